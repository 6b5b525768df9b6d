/**
 * Handlers that wait for mixes of steps, sleeps, signals and jobs, in races and one after the other: whatever they are made of
 * and whenever they are woken, they get what promises of the same lengths would give, and come to their end.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { defineHandlers, type HandlerContext, type Job } from '../../src/handler';
import { type HandlerRun, runHandler } from '../../src/testing';
import { histories } from '../support/long';

const T0 = Date.UTC(2030, 0, 1);
const SIGNAL_TIMEOUT_MS = 50_000;

type Leaf =
  | { kind: 'step'; fails: boolean }
  | { kind: 'sleep'; ms: number }
  /** It comes so long after the beginning of the job; 0: never. */
  | { kind: 'signal'; comesMs: number }
  /** It ends so long after it began. */
  | { kind: 'run'; ms: number; fails: boolean };
type Mix = (Leaf & { name: string }) | { kind: 'all' | 'settled' | 'race' | 'any' | 'then'; of: Mix[] };

/** What becomes of a mix, and when. */
interface End extends Moment {
  value?: unknown;
  failed?: true;
}

interface Moment {
  /** Ms from the beginning of the job. */
  at: number;
  /** When that came about which was passed at this moment, one after the other: what is over settles by its own time. */
  passed: number[];
}

/** Steps pass nothing, so they are before all that was there when they were called. */
function isBefore(one: Moment, other: Moment): boolean {
  if (one.at !== other.at) return one.at < other.at;
  const parts = one.passed.findIndex((time, index) => time !== other.passed[index]);
  const from = parts === -1 ? one.passed.length : parts;
  return Math.max(...one.passed.slice(from)) < Math.max(...other.passed.slice(from));
}

/** As promises settle: the first by time; of one moment, steps, and then what came about first. */
function expected(mix: Mix, from: Moment = { at: 0, passed: [] }): End {
  if (!('of' in mix)) return endOfLeaf(mix, from);
  if (mix.kind === 'then') {
    let end: End = from;
    for (const one of mix.of) {
      end = expected(one, end);
      if (end.failed) return end;
    }
    return end;
  }
  const ends = mix.of.map((one) => expected(one, from));
  const first = (some: End[]) => some.reduce((one, other) => (isBefore(other, one) ? other : one));
  const { at, passed } = ends.reduce((one, other) => (isBefore(one, other) ? other : one));
  const failed = ends.filter((end) => end.failed);
  const good = ends.filter((end) => !end.failed);
  if (mix.kind === 'race') return first(ends);
  if (mix.kind === 'any') return good.length > 0 ? first(good) : { at, passed, failed: true };
  if (mix.kind === 'settled') return { at, passed, value: ends.map((end) => (end.failed ? 'failed' : end.value)) };
  return failed.length > 0 ? first(failed) : { at, passed, value: ends.map(({ value }) => value) };
}

function endOfLeaf(leaf: Leaf & { name: string }, from: Moment): End {
  const end =
    leaf.kind !== 'signal' && 'fails' in leaf && leaf.fails ? { failed: true as const } : { value: leaf.name };
  const after = (time: number): Moment => {
    const at = Math.max(from.at, time);
    return { at, passed: [...(at === from.at ? from.passed : []), time] };
  };
  if (leaf.kind === 'step') return { ...from, value: undefined, ...end };
  if (leaf.kind !== 'signal') return { ...after(from.at + leaf.ms), ...end };
  const until = from.at + SIGNAL_TIMEOUT_MS;
  const isLate = leaf.comesMs === 0 || leaf.comesMs > until;
  return isLate ? { ...after(until), failed: true } : { ...after(leaf.comesMs), ...end };
}

/** The same mix, of what a handler has. */
function handle(mix: Mix, ctx: HandlerContext): Promise<unknown> {
  if ('of' in mix) {
    if (mix.kind === 'then') {
      return mix.of.reduce<Promise<unknown>>((before, one) => before.then(() => handle(one, ctx)), Promise.resolve());
    }
    const promises = mix.of.map((one) => handle(one, ctx));
    if (mix.kind === 'race') return Promise.race(promises);
    if (mix.kind === 'any') return Promise.any(promises);
    if (mix.kind === 'all') return Promise.all(promises);
    const end = (settled: PromiseSettledResult<unknown>) => (settled.status === 'rejected' ? 'failed' : settled.value);
    return Promise.allSettled(promises).then((all) => all.map(end));
  }
  const { name } = mix;
  if (mix.kind === 'sleep') return ctx.sleep(name, mix.ms).then(() => name);
  if (mix.kind === 'signal') return ctx.waitFor(name, { timeout: SIGNAL_TIMEOUT_MS }).then(() => name);
  if (mix.kind === 'run') return ctx.run(name, 'c.d', []);
  return ctx.step(name, () => {
    if (mix.fails) throw new Error('no');
    return name;
  });
}

const leavesOf = (mix: Mix): (Leaf & { name: string })[] => ('of' in mix ? mix.of.flatMap(leavesOf) : [mix]);

/** Plays the queue: continues the job when something that it waits for has come. */
async function played(mix: Mix): Promise<{ run: HandlerRun; again: HandlerRun; at: number }> {
  const run = async (_: Job, ctx: HandlerContext) => {
    try {
      return { value: await handle(mix, ctx) };
    } catch (error) {
      if (ctx.signal.aborted) throw error;
      return { failed: true };
    }
  };
  const handlers = defineHandlers({ 'a.b': run });
  const leaves = new Map(leavesOf(mix).map((leaf) => [leaf.name, leaf]));
  const begun = new Map<string, number>();
  const endOf = (name: string) => (begun.get(name) as number) + (leaves.get(name) as Leaf & { ms: number }).ms;
  let steps: HandlerRun['steps'] = {};
  let now = T0;
  for (let runs = 0; runs < 100; runs++) {
    for (const [name, record] of Object.entries(steps)) {
      const leaf = leaves.get(name) as Leaf;
      if (leaf.kind !== 'run' || !('until' in record) || endOf(name) > now) continue;
      const error = { code: 'no', message: 'no', type: 'Error', state: 'discarded' } as const;
      const { until: _, ...rest } = record;
      steps[name] = { ...rest, at: endOf(name), ...(leaf.fails ? { error } : { result: name }) };
    }
    for (const { name, ...leaf } of leaves.values()) {
      if (leaf.kind !== 'signal' || leaf.comesMs === 0 || T0 + leaf.comesMs > now || 'signal' in (steps[name] ?? {}))
        continue;
      steps[name] = { signal: { payload: null, at: T0 + leaf.comesMs } };
    }
    const once = await runHandler(handlers, 'a.b', [], { now, steps });
    steps = once.steps;
    if (!once.wakes)
      return { run: once, again: await runHandler(handlers, 'a.b', [], { now: now + 1e9, steps }), at: now - T0 };
    for (const { name } of once.waitsFor) if (!begun.has(name)) begun.set(name, now);
    const moments = [once.wakes.at];
    // The queue knows all signals that it waits for: they are on record until they come.
    for (const leaf of leaves.values()) {
      if (leaf.kind === 'signal' && leaf.comesMs > 0 && 'until' in (steps[leaf.name] ?? {}))
        moments.push(T0 + leaf.comesMs);
    }
    const ends = once.waitsFor.map(({ name }) => ({
      at: endOf(name),
      fails: (leaves.get(name) as { fails?: boolean }).fails,
    }));
    if (ends.length > 0) moments.push(Math.max(...ends.map(({ at }) => at)));
    for (const { at, fails } of ends) if (fails) moments.push(at);
    now = Math.max(now, Math.min(...moments));
  }
  throw new Error('it does not come to its end');
}

const ms = fc.integer({ min: 1, max: 40_000 });
const others: fc.Arbitrary<Leaf>[] = [
  fc.record({ kind: fc.constant('step' as const), fails: fc.constantFrom(false, false, true) }),
  fc.record({ kind: fc.constant('sleep' as const), ms }),
  fc.record({ kind: fc.constant('signal' as const), comesMs: fc.oneof(fc.constant(0), ms) }),
];
const job = fc.record({ kind: fc.constant('run' as const), ms, fails: fc.boolean() });

/** Mixes of these leaves, with names of their own. @param most jobs that they wait for at most */
function mixes(
  leaves: fc.Arbitrary<Leaf>[],
  how: ('all' | 'settled' | 'race' | 'any' | 'then')[],
  most: number,
): fc.Arbitrary<Mix> {
  const { mix } = fc.letrec<{ mix: Mix }>((tie) => ({
    mix: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.oneof(...leaves, job) as unknown as fc.Arbitrary<Mix>,
      fc.record({ kind: fc.constantFrom(...how), of: fc.array(tie('mix'), { minLength: 1, maxLength: 3 }) }),
    ),
  }));
  return mix.map(named).filter((one) => leavesOf(one).filter(({ kind }) => kind === 'run').length <= most);
}

function named(mix: Mix): Mix {
  let count = 0;
  const name = (one: Mix): Mix =>
    'of' in one ? { ...one, of: one.of.map(name) } : { ...one, name: `${one.kind} ${++count}` };
  return name(mix);
}

/** No two moments are one: which of two ends of one moment is the first is nobody's promise. */
const isClear = (mix: Mix): boolean => {
  const times = leavesOf(mix).flatMap((leaf) => ('ms' in leaf ? [leaf.ms] : 'comesMs' in leaf ? [leaf.comesMs] : []));
  const isOneStep = leavesOf(mix).filter(({ kind }) => kind === 'step').length < 2;
  return isOneStep && new Set(times).size === times.length;
};

async function holds(mix: Mix): Promise<number> {
  const { failed, value } = expected(mix);
  const { run, again, at } = await played(mix);
  expect(run.status).toBe('completed');
  expect(run.result).toEqual(failed ? { failed } : { value });
  // In a later run everything has happened: the same branches win.
  expect(again.result).toEqual(run.result);
  return at;
}

it('any mix of races, chains and groups with one job ends as promises do', { timeout: 600_000 }, () =>
  fc.assert(
    fc.asyncProperty(mixes(others, ['all', 'settled', 'race', 'any', 'then'], 1).filter(isClear), async (mix) => {
      expect(await holds(mix)).toBe(expected(mix).at);
    }),
    { numRuns: histories(300) },
  ),
);

// Jobs that are waited for at once wake their handler together: what follows one of them may begin later.
it('any mix without races, with several jobs, ends as promises do', { timeout: 600_000 }, () =>
  fc.assert(
    fc.asyncProperty(mixes(others.slice(0, 2), ['settled', 'then'], 9).filter(isClear), async (mix) => {
      expect(await holds(mix)).toBeGreaterThanOrEqual(expected(mix).at);
    }),
    { numRuns: histories(200) },
  ),
);
