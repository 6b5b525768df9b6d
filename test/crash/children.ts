/**
 * The handler that waits for other jobs: does what its job's plan says, in a handler Worker and in a worker that pulls.
 * It tells the collector everything before it goes on, as `durable.ts` does. Its plan has those of its children.
 */
import {
  ChildError,
  type ChildOutcome,
  ChildrenFailedError,
  type HandlerContext,
  type Job,
  type RunAllOptions,
  RunTimeoutError,
  type UndoContext,
  UnrecoverableError,
} from '../../src/handler';
import { type Env, pause, report } from './durable';

interface Child {
  type: string;
  plan: FamilyPlan;
  options: Record<string, unknown>;
}

/** Waits for one child or for several. `limit_ms`: it goes on without the child after this time. */
interface Wait extends Pick<RunAllOptions, 'onFailure' | 'detached'> {
  do: 'run' | 'all' | 'race';
  name: string;
  children: Child[];
  timeout_ms: number;
  limit_ms?: number;
  /** Does it go on when a child has failed? */
  isCaught: boolean;
}

/** One thing that the handler does. `fail`: it fails in this attempt. */
type Act =
  | Wait
  | { do: 'both'; acts: Wait[] }
  | { do: 'step'; name: string; work_ms: number }
  | { do: 'sleep'; name: string; ms: number }
  | { do: 'fail'; attempt: number };

export interface FamilyPlan {
  token: string;
  acts: Act[];
  end: 'complete' | 'exhaust' | 'fatal';
  work_ms: number;
}

/** What a handler learns of its children. */
interface Seen {
  ends?: { index: number; id?: string | undefined; result?: unknown; error?: Record<string, unknown> | undefined }[];
  /** The time to wait is over. */
  isOver?: true;
  thrown?: unknown;
}

const told = ({ state, code, message }: ChildError) => ({ state, code, message });

/** What was thrown instead of the ends of children. Anything else is thrown again. */
function seenIn(thrown: unknown): Seen {
  if (thrown instanceof RunTimeoutError) return { isOver: true, thrown };
  if (thrown instanceof ChildError) return { ends: [{ index: 0, id: thrown.id, error: told(thrown) }], thrown };
  if (!(thrown instanceof ChildrenFailedError)) throw thrown;
  const ends = thrown.failures.map(({ index, id, error }) => ({ index, id, error: told(error) }));
  return { ends, thrown };
}

function waitFor(ctx: HandlerContext<Env>, act: Wait): Promise<Seen> {
  const { name, children, onFailure, timeout_ms: timeout, detached } = act;
  const [first] = children;
  if (!first) throw new Error(`${name} has no children`);
  if (act.do !== 'all') {
    const started = ctx.run(name, first.type, [first.plan], { ...first.options, timeout, detached });
    const one = started.then((result): Seen => ({ ends: [{ index: 0, result }] }), seenIn);
    if (act.limit_ms === undefined) return one;
    const limit = ctx.sleep(`limit-${name}`, act.limit_ms).then((): Seen => ({ isOver: true }));
    return Promise.race([one, limit]);
  }
  const jobs = children.map(({ type, plan, options }) => ({ type, args: [plan], options }));
  return ctx.runAll(name, jobs, { onFailure, timeout, detached }).then((outcomes) => {
    const all = outcomes as ChildOutcome[];
    return { ends: all.map(({ id, result, error }, index) => ({ index, id, result, error: error && told(error) })) };
  }, seenIn);
}

async function live(job: Job<[FamilyPlan]>, ctx: HandlerContext<Env>) {
  const [{ token, acts, end, work_ms }] = job.args;
  const { attempt } = ctx;
  const run = crypto.randomUUID();
  const tell = (event: string, more: Record<string, unknown> = {}) =>
    report(ctx.env.COLLECTOR, '/children', { token, run, event, at: Date.now(), ...more });

  let isLeft = false;
  /** While a child that has lost a race is pending, nothing but a step keeps the run open. */
  const say = async <More extends Record<string, unknown>>(event: string, more: More): Promise<More> => {
    const saying = () => tell(event, more).then(() => more);
    return isLeft ? await ctx.step(`told-${event}-${more.name}`, saying) : await saying();
  };

  const step = async (name: string, ms: number) => {
    const { value } = await ctx.step(name, async () => {
      const made = { value: crypto.randomUUID() };
      await tell('begin', { name, ...made });
      await pause(ms);
      return made;
    });
    await say('resolved', { name, value });
  };

  /** All at once: told before, so that nothing comes between the calls. */
  const wait = async (waits: Wait[]) => {
    for (const { name } of waits) await say('waiting', { name });
    const seen = await Promise.all(waits.map((act) => waitFor(ctx, act)));
    for (const [at, { name, limit_ms }] of waits.entries()) {
      const { ends, isOver } = seen[at] as Seen;
      if (isOver && limit_ms !== undefined) isLeft = true;
      await say('saw', { name, ends, isOver });
    }
    const failed = seen.find(({ thrown }, at) => thrown && !waits[at]?.isCaught);
    if (!failed) return;
    await say('end', { outcome: 'failed' });
    throw failed.thrown;
  };

  await tell('run', { attempt });
  for (const act of acts) {
    if (act.do === 'step') await step(act.name, act.work_ms);
    else if (act.do === 'sleep') await ctx.sleep(act.name, act.ms);
    else if (act.do === 'both') await wait(act.acts);
    else if (act.do !== 'fail') await wait([act]);
    else if (act.attempt === attempt) throw new Error(`planned ${token} ${attempt}`);
  }
  if (!isLeft) await pause(work_ms);
  if (end === 'exhaust') throw new Error(`planned ${token} ${attempt}`);
  if (end === 'fatal') {
    await say('end', { outcome: 'failed' });
    throw new UnrecoverableError(`planned ${token} ${attempt}`);
  }
  const { value } = await say('end', { outcome: 'completed', value: crypto.randomUUID() });
  return { token, attempt, value };
}

/** Undoes steps and children alike: both are named in the plan. */
async function undo(
  result: { value?: string } | undefined,
  { job, step: name, isCertain, jobIds, env }: UndoContext<Env>,
) {
  const [{ token }] = job.args as [FamilyPlan];
  const { end } = job;
  const body = { token, event: 'undone', name, isCertain, jobIds, end, value: result?.value, at: Date.now() };
  await report(env.COLLECTOR, '/children', body);
}

export const families = {
  'child.work': live,
  'child.undone': { handler: live, undo: { 'mark-*': undo, 'held-*': undo } },
};
