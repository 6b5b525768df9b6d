/** Durable handlers that tests run in several ways: pushed to, and pulled. */
import type { HandlerContext, Job } from '../../src/handler';

/** How often the step of a job was tried. */
const tried = new Map<string, number>();

const nap = (ctx: HandlerContext) => ctx.sleep('nap', '1h').then(() => 'slept');
const go = (ctx: HandlerContext) => ctx.waitFor<string>('go', { timeout: '1d' });
/** A signal that never comes. */
const lost = (ctx: HandlerContext) => ctx.waitFor('lost', { timeout: '30m' });

const RACES: Record<string, (ctx: HandlerContext) => unknown> = {
  race: (ctx) => Promise.race([go(ctx), nap(ctx)]),
  any: (ctx) => Promise.any([lost(ctx), nap(ctx)]),
  allSettled: async (ctx) =>
    (await Promise.allSettled([lost(ctx), nap(ctx), ctx.step('quick', () => 1)])).map(({ status }) => status),
  limit: (ctx) =>
    Promise.race([ctx.step('slow', () => new Promise(() => undefined)), ctx.sleep('limit', 1).then(() => 'late')]),
  unawaited: async (ctx) => {
    void ctx.sleep('forgotten', '1d');
    return await ctx.step('quick', () => 'done');
  },
  inside: (ctx) => ctx.step('outer', () => ctx.sleep('inner', '1h')).catch(({ name }: Error) => name),
};

/** Runs a race by its name. */
export const race = async (job: Job, ctx: HandlerContext) => await RACES[job.args[0] as string]?.(ctx);

const MINUTELY = { maxAttempts: 5, backoffStrategy: 'constant', initialInterval: '1m', jitter: false } as const;

/** A step that succeeds in its third try, and one that never does. */
export async function tries(job: Job, ctx: HandlerContext): Promise<unknown> {
  const charge = (): number => {
    const count = (tried.get(job.id) ?? 0) + 1;
    tried.set(job.id, count);
    if (count < 3) throw new RangeError('declined');
    return count;
  };
  const charged = await ctx.step('charge', charge, { retry: MINUTELY, timeout: '20s' });
  const refuse = () => {
    throw new TypeError('no refund');
  };
  const refunded = await ctx
    .step('refund', refuse, { retry: { maxAttempts: 2, initialInterval: 1, jitter: false } })
    .catch(({ name, type, tries }) => ({ name, type, tries }));
  return { charged, refunded, tried: tried.get(job.id) };
}
/** Its steps have more to remember than comes with a job. @returns in which attempt each ran, and its length */
export async function large(_: Job, ctx: HandlerContext): Promise<[attempt: string | undefined, length: number][]> {
  const results: string[] = [];
  for (const name of ['a', 'b', 'c']) results.push(await ctx.step(name, () => `${ctx.attempt}`.repeat(600 * 1024)));
  if (ctx.attempt === 1) throw new Error('once more');
  return results.map((text) => [text[0], text.length]);
}
