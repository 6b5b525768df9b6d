/** A handler Worker that does what its job says, and remembers every run so that a test can look. */
import { deadLetter, defineHandlers, discard, fail, kill, retryIn, UnrecoverableError } from '../../src/handler';

interface Order {
  do?: string;
  /** Fail as `do` says in attempts up to this one, then succeed. */
  until?: number;
  value?: unknown;
}

class PoisonPill extends UnrecoverableError {}

const runs: { id: string; type: string; attempt: number; aborted?: boolean }[] = [];

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
    default:
      return order.value;
  }
}

export default defineHandlers(
  {
    'work.do': async (job, ctx) => {
      const order = (job.args[0] ?? {}) as Order;
      const run = { id: job.id, type: job.type, attempt: ctx.attempt };
      runs.push(run);
      if (order.until !== undefined && ctx.attempt > order.until) return order.value;
      return obey(order, ctx.signal);
    },
    'work.patient': {
      handler: async (job, ctx) => {
        runs.push({ id: job.id, type: job.type, attempt: ctx.attempt });
        return obey((job.args[0] ?? {}) as Order, ctx.signal);
      },
      retry: { backoff_strategy: 'constant', initial_interval: '7s', jitter: false },
      maxAttempts: 9,
      timeoutMs: 5_000,
    },
    'work.narrow': { handler: async () => 'ok', concurrency: 1 },
  },
  {
    fetch: (request) => {
      if (new URL(request.url).pathname !== '/runs') return new Response('no such page', { status: 404 });
      return Response.json(runs);
    },
    path: '/',
  },
);
