/** Durable handlers that tests run in several ways: pushed to, and pulled. */
import { ChildError, fail, type HandlerContext, type Job, type RunChildOptions } from '../../src/handler';

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

/** A job that another one waits for. */
export async function child(job: Job): Promise<unknown> {
  const [how, text] = job.args as [string, string];
  if (how === 'fail') throw fail(`no ${text}`);
  return { text, parent: job.meta.parent_id };
}

type Family = (ctx: HandlerContext, type: string, options: RunChildOptions) => unknown;

const run =
  (name: string, how: string, more: RunChildOptions = {}): Family =>
  (ctx, type, options) =>
    ctx.run<{ text: string }>(name, type, [how, name], { ...options, ...more } as RunChildOptions);

const FAMILIES: Record<string, Family> = {
  one: run('only', 'ok'),
  fails: async (...args) => {
    const thrown = await Promise.resolve(run('only', 'fail')(...args)).catch((error: ChildError) => error);
    return thrown instanceof ChildError && [thrown.name, thrown.state, thrown.code];
  },
  ends: run('only', 'fail'),
  all: async (ctx, type, options) => {
    const jobs = ['a', 'b', 'c'].map((text) => ({ type, args: [text === 'b' ? 'fail' : 'ok', text], options }));
    const ends = await ctx.runAll<{ text: string }>('several', jobs, { onFailure: 'return' });
    return ends.map(({ result, error }) => result?.text ?? error?.state);
  },
  mix: async (...args) => {
    const [ctx] = args;
    const three = [run('one', 'ok')(...args), ctx.step('two', () => ({ text: 'two' })), run('three', 'ok')(...args)];
    return (await Promise.all(three)).map((each) => (each as { text: string }).text);
  },
  race: async (...args) => {
    const won = await Promise.race([run('late', 'ok', { delay: '2d' })(...args), nap(args[0])]);
    return [won, ((await run('then', 'ok')(...args)) as { text: string }).text];
  },
  late: (...args) =>
    Promise.resolve(run('late', 'ok', { delay: '2d', timeout: '1h' })(...args)).catch(({ name }) => name),
};

/** Runs a family by its name: its jobs are of this type, and in this queue. */
export const family = async (job: Job, ctx: HandlerContext) => {
  const [how, type, queue] = job.args as [string, string, string];
  return await FAMILIES[how]?.(ctx, type, { queue });
};

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
