/** A handler Worker whose handlers take many jobs in one call. It remembers the calls, so that a test can look. */
import { batched, defineHandlers, discard, type Job } from '../../../src/handler';
import type { BatchContext } from '../../../src/handler/types';

interface Order {
  /** `fail` and `discard` fail this job; the others are about the whole call. */
  do?: 'fail' | 'discard' | 'throw' | 'short' | 'step' | 'gate' | 'nothing' | 'hang';
  gate?: string;
}

/** Every call: its type, and the jobs in it. */
const calls: { type: string; ids: string[]; attempts: number[] }[] = [];
const open = new Set<string>();

async function run(jobs: readonly Job<[Order?]>[], ctx: BatchContext): Promise<unknown[] | undefined> {
  const type = jobs[0]?.type ?? '';
  calls.push({ type, ids: jobs.map(({ id }) => id), attempts: jobs.map(({ attempt }) => attempt) });
  const asked = (what: Order['do']) => jobs.find(({ args: [order] }) => order?.do === what);
  const gate = asked('gate')?.args[0]?.gate;
  while (gate !== undefined && !open.has(gate)) await scheduler.wait(3);
  for (const job of jobs) {
    const what = job.args[0]?.do;
    if (what === 'fail') ctx.fail(job, new TypeError('as ordered'));
    if (what === 'discard') ctx.fail(job, discard('not needed'));
  }
  if (asked('throw')) throw new RangeError('all of you');
  if (asked('hang')) await scheduler.wait(60_000);
  if (asked('step')) await (ctx as unknown as { step(name: string, run: () => void): unknown }).step('one', () => {});
  if (asked('nothing')) return undefined;
  ctx.log.info('called', { together: jobs.length });
  return asked('short') ? [] : jobs.map((_, at) => `${at + 1} of ${jobs.length}`);
}

export default defineHandlers(
  {
    'chunk.five': batched({ size: 5, wait: '5s' }, run),
    'chunk.grouped': batched({ size: 5, wait: '5s', by: 'group' }, run),
    'chunk.many': batched({ size: 1000, wait: '1h' }, run),
    'chunk.narrow': { handler: batched({ size: 2, wait: '1h' }, run), concurrency: 1 },
    'chunk.one': async (job) => void calls.push({ type: job.type, ids: [job.id], attempts: [job.attempt] }),
  },
  {
    fetch: (request) => {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname === '/calls') {
        const ids = new Set(searchParams.get('ids')?.split(','));
        return Response.json(calls.filter((call) => call.ids.some((id) => ids.has(id))));
      }
      if (pathname === '/open') return Response.json({ opened: open.add(searchParams.get('gate') ?? '').size });
      return new Response('no such page', { status: 404 });
    },
    path: '/',
    log: () => undefined,
  },
);
