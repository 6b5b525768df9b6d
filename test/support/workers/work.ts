/** A handler Worker that does what its job says, and remembers every run so that a test can look. */
import { deadLetter, defineHandlers, discard, fail, kill, retryIn, UnrecoverableError } from '../../../src/handler';
import { child, family, large, race, tries } from '../durable';

interface Order {
  do?: string;
  /** Fail as `do` says in attempts up to this one, then succeed. */
  until?: number;
  value?: unknown;
  gate?: string;
  /** Characters of the result. */
  size?: number;
}

interface Run {
  id: string;
  type: string;
  attempt: number;
  delivery_id: string | undefined;
  aborted: boolean;
  /** Why: the name of the signal's reason. */
  reason?: string;
}

class PoisonPill extends UnrecoverableError {}

const runs: Run[] = [];
const open = new Set<string>();
/** The jobs of `work.steps` whose first step was done, each as often as it was. */
const began: string[] = [];
/** Runs under way, and the most there ever were, by gate. */
const load = new Map<string, { now: number; most: number }>();

async function passGate(gate: string): Promise<string> {
  const here = load.get(gate) ?? { now: 0, most: 0 };
  load.set(gate, here);
  here.now++;
  here.most = Math.max(here.most, here.now);
  while (!open.has(gate)) await scheduler.wait(3);
  here.now--;
  return gate;
}

async function obey(order: Order, signal: AbortSignal): Promise<unknown> {
  switch (order.do) {
    case 'throw':
      throw new TypeError('as ordered');
    case 'unrecoverable':
      throw new PoisonPill('poisoned');
    case 'discard':
      throw discard('not needed');
    case 'fail':
      throw fail('known failure');
    case 'dead-letter':
      throw deadLetter('look at this');
    case 'kill':
      throw kill('never again');
    case 'retry-in':
      throw retryIn('90s', 'later');
    case 'hang':
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    case 'deaf':
      return new Promise(() => undefined);
    case 'sized':
      return 'x'.repeat(order.size ?? 0);
    case 'gate':
      return passGate(order.gate ?? '');
    case 'gate-throw':
      await passGate(order.gate ?? '');
      throw new TypeError('behind the gate');
    case 'large':
      return 'x'.repeat(1_048_577);
    default:
      return order.value;
  }
}

function run(
  job: { id: string; type: string; args: readonly unknown[] },
  ctx: { attempt: number; deliveryId: string | undefined; signal: AbortSignal },
) {
  const order = (job.args[0] ?? {}) as Order;
  const entry: Run = { id: job.id, type: job.type, attempt: ctx.attempt, delivery_id: ctx.deliveryId, aborted: false };
  runs.push(entry);
  ctx.signal.addEventListener('abort', () => {
    entry.aborted = true;
    entry.reason = (ctx.signal.reason as Error).name;
  });
  if (order.until !== undefined && ctx.attempt > order.until) return order.value;
  return obey(order, ctx.signal);
}

export default defineHandlers(
  {
    'work.do': async (job, ctx) => run(job, ctx),
    'work.patient': {
      handler: async (job, ctx) => run(job, ctx),
      retry: { backoffStrategy: 'constant', initialInterval: '7s', jitter: false },
      maxAttempts: 9,
      timeoutMs: 5_000,
    },
    'work.talk': async (job, ctx) => {
      run(job, ctx);
      await ctx.progress(0.5, 'half way');
      const first = await ctx.step('first', () => runs.filter(({ id }) => id === job.id).length);
      ctx.log.info('first step done', { first });
      if (ctx.attempt === 1) throw new TypeError('between the steps');
      const child = await ctx.enqueue('work.do', [{ value: 'child' }]);
      await ctx.sleep('pause', '1h');
      const { by } = await ctx.waitFor<{ by: string }>('approved', { timeout: '1d' });
      return { first, by, child: child.id };
    },
    'work.approve': async (job, ctx) => {
      run(job, ctx);
      const url = await ctx.signalUrl('approved', { choices: ['yes', 'no'], title: 'Well?', expires: '7d' });
      return { url, ...(await ctx.waitFor<{ choice: string }>('approved')) };
    },
    // Each step says in which run it was done; what it did is counted, since the queue keeps only its first result.
    'work.steps': async (job, ctx) => {
      run(job, ctx);
      const { steps = 1, gate, sleep } = job.args[0] as { steps?: number; gate?: string; sleep?: string };
      const inRun: number[] = [];
      for (let n = 0; n < steps; n++) {
        const result = await ctx.step(`step ${n}`, () => {
          if (n === 0) began.push(job.id);
          return runs.filter(({ id }) => id === job.id).length;
        });
        inRun.push(result);
        if (n === 0 && gate !== undefined) await passGate(gate);
      }
      if (sleep !== undefined) await ctx.sleep('pause', sleep as '1d');
      return { inRun, began: began.filter((id) => id === job.id).length };
    },
    'work.large': large,
    // It fails in the middle of its second step that can be undone.
    'work.undone': {
      undo: {
        '*': (result, { step, isCertain, log }) => log.info(`${step} ${isCertain ? `with ${result}` : 'perhaps'}`),
      },
      handler: async (job, ctx) => {
        await ctx.step('charge', () => `charged ${job.args[0]}`);
        await ctx.step('reserve', () => Promise.reject(fail('none left')));
      },
    },
    'work.race': race,
    'work.family': family,
    'work.child': child,
    'work.tries': tries,
    'work.narrow': { handler: async (job, ctx) => run(job, ctx), concurrency: 1 },
    'work.pair': { handler: async (job, ctx) => run(job, ctx), concurrency: 2 },
  },
  {
    fetch: (request) => {
      const { pathname, searchParams } = new URL(request.url);
      const gate = searchParams.get('gate') ?? '';
      if (pathname === '/runs') return Response.json(runs.filter(({ id }) => id === searchParams.get('id')));
      if (pathname === '/load') return Response.json(load.get(gate) ?? { now: 0, most: 0 });
      if (pathname === '/open') return Response.json({ opened: open.add(gate).has(gate) });
      return new Response('no such page', { status: 404 });
    },
    path: '/',
    log: () => undefined,
  },
);
