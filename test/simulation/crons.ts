/** What owners and operators do to cron entries, and what other queues say of fires that depend on them. */
import fc from 'fast-check';
import { ApiError } from '../../src/job/errors';
import { enableCron, putCron, removeCron } from '../../src/queue/features/cron/feature';
import { mustReadCron, triggerHere } from '../../src/queue/features/cron/fire';
import { enqueue } from '../../src/queue/jobs/enqueue';
import { type CronDefinition, jobOf } from '../../src/schedules/definition';
import { same } from './agree';
import type { Area, Turn } from './area';
import { EXPRESSIONS, ZONES } from './calendar';
import { plainerOrders } from './jobs';
import type { JobOrder } from './model';
import * as model from './model-crons';
import { order } from './orders';
import { type Scene, statusOf } from './scene';
import type { StepOf } from './steps';
import { changedCron, newCron, orderIn } from './wire';
import { BUSY } from './world';

export type CronStep =
  | { op: 'cron-put'; name: string; cron: CronAsk; order: ChangeOrder }
  | { op: 'cron-patch'; name: string; change: Partial<CronAsk>; order: ChangeOrder }
  | { op: 'cron-enable'; name: string; enabled: boolean }
  | { op: 'cron-trigger'; name: string }
  | { op: 'cron-delete'; name: string; late: boolean }
  | { op: 'answer'; how: 'all' | 'one' | 'busy' | 'die' }
  /** To so long past the next fire of an entry. */
  | { op: 'jump-to-fire'; past: number };

/** What a step says of an entry: times from now, ms. */
export type CronAsk = Omit<model.CronTerms, 'enabled'> & { enabled: boolean | undefined };

/** Does a change come in time, after a later one, or for an entry that is no longer what it was? */
export type ChangeOrder = 'in-time' | 'late' | 'overtaken';

/** A change whose number is older than this is given up, ms. */
const OLD_CHANGE = 60_000;

/** Reads the entry of a step as the queue takes it; undefined: there is none to be changed. */
export async function readCronStep(
  scene: Scene,
  step: StepOf<'cron-put' | 'cron-patch'>,
): Promise<CronDefinition | 400 | undefined> {
  const { now, q } = scene;
  try {
    if (step.op === 'cron-put') return await newCron(step.name, termsOf(scene, step), now);
    const base = q.store.crons.read(step.name)?.definition;
    return base && (await changedCron(base, absolute(step.change, now), now));
  } catch (error) {
    if (error instanceof ApiError && error.data.status === 400) return 400;
    throw error;
  }
}

/** Times of a step count from now. */
function absolute(change: Partial<CronAsk>, now: number): Partial<model.CronTerms> {
  const { start, end, enabled, ...rest } = change;
  return {
    ...rest,
    ...(start !== undefined && { start: start === null ? null : now + start }),
    ...(end !== undefined && { end: end === null ? null : now + end }),
    ...(typeof enabled === 'boolean' && { enabled }),
  };
}

/** The terms of an entry that is declared; one that was paused stays so unless the declaration says otherwise. */
function termsOf(scene: Scene, { name, cron }: StepOf<'cron-put'>): model.CronTerms {
  const enabled = scene.model.crons.entries.get(name)?.terms.enabled ?? true;
  return { enabled, ...absolute(cron, scene.now) } as model.CronTerms;
}

/** Creates, replaces or changes an entry. */
export function put(
  scene: Scene,
  step: StepOf<'cron-put' | 'cron-patch'>,
  definition: CronDefinition | 400 | undefined,
): void {
  const { now, q } = scene;
  const { entries, versions } = scene.model.crons;
  const { name } = step;
  const before = entries.get(name);
  same(definition === undefined, step.op === 'cron-patch' && !before, `there is no entry ${name}`);
  if (definition === undefined) return;
  const terms = step.op === 'cron-put' ? termsOf(scene, step) : { ...before?.terms, ...absolute(step.change, now) };
  const { start, end } = terms as model.CronTerms;
  const isBackwards = start !== null && end !== null && end < start;
  same(definition === 400, isBackwards, `${name} is malformed`);
  if (definition === 400) return;
  const last = versions.get(name);
  const isLate = step.order === 'late' && last !== undefined;
  const version = isLate ? last - 1 : Math.max(now, (last ?? 0) + 1);
  const basedOn = step.op === 'cron-patch' ? (step.order === 'overtaken' ? version - 2 : last) : undefined;
  const request = { definition, version, ...(basedOn !== undefined && { basedOn }) };
  const outcome = scene.attempt((at) => putCron(q, request, at));
  scene.tidy();
  const isOvertaken = step.op === 'cron-patch' && step.order === 'overtaken' && basedOn !== last;
  const status = now - version > OLD_CHANGE ? 503 : isOvertaken || (isLate && !before) ? 409 : 200;
  same(statusOf(outcome), status, `put of ${name}`);
  if (status !== 200 || isLate) return;
  if ('value' in outcome) same(outcome.value.created, before === undefined, `${name} is new`);
  if (!before || JSON.stringify(before.terms) !== JSON.stringify(inOrder(terms as model.CronTerms))) {
    versions.set(name, version);
  }
  model.putCron(scene.model, name, inOrder(terms as model.CronTerms), now);
}

/** The same terms are the same text. */
function inOrder(terms: model.CronTerms): model.CronTerms {
  const { expression, zone, start, end, overlap, missed, catchup, limit, enabled, job } = terms;
  return { expression, zone, start, end, overlap, missed, catchup, limit, enabled, job };
}

/** Steps on an entry that may or may not exist. */
export function onCron(scene: Scene, step: StepOf<'cron-enable' | 'cron-trigger' | 'cron-delete'>): void {
  const { now, q } = scene;
  const { name } = step;
  const { entries, versions } = scene.model.crons;
  const entry = entries.get(name);
  if (step.op === 'cron-enable') {
    const outcome = scene.attempt((at) => enableCron(q, name, step.enabled, at));
    scene.tidy();
    same(statusOf(outcome), entry ? 200 : 404, `enabling ${name}`);
    if (entry) model.putCron(scene.model, name, { ...entry.terms, enabled: step.enabled }, now);
    return;
  }
  if (step.op === 'cron-delete') {
    const last = versions.get(name) ?? now;
    const version = step.late ? last - 1 : Math.max(now, last + 1);
    const outcome = scene.attempt((at) => removeCron(q, name, version, at));
    scene.tidy();
    const isRefused = step.late && entry !== undefined;
    same(statusOf(outcome), isRefused ? 409 : 200, `deletion of ${name}`);
    if ('value' in outcome) same(outcome.value === null, entry === undefined, `there was no ${name}`);
    if (isRefused || (step.late && versions.has(name))) return;
    versions.set(name, version);
    entries.delete(name);
    return;
  }
  const outcome = scene.attempt((at) => triggerHere(q, name, jobOf(mustReadCron(q, name).definition, { now: at }), at));
  scene.tidy();
  if (!entry) {
    same(statusOf(outcome), 404);
    return;
  }
  const { job, outcome: expected } = model.trigger(scene.model, entry, now);
  same(statusOf(outcome), expected === 'refused' ? 409 : 200, `trigger of ${name}`);
  if ('error' in outcome) return;
  same(outcome.value.deduplicated ?? false, expected === 'existing');
  job.id ||= outcome.value.record.id;
  same(outcome.value.record.id, job.id);
}

/** The other queues answer the question that the object has put to them; or it dies before it hears of it. */
export async function answer(scene: Scene, how: StepOf<'answer'>['how']): Promise<void> {
  const { world } = scene;
  for (let left = how === 'all' ? 20 : 1; left > 0; left--) {
    const ask = world.asks.shift();
    if (!ask) return;
    if (how === 'busy') {
      ask.answer({ ok: false, error: BUSY });
      await world.settled();
      return;
    }
    const { id = '', body } = ask.job;
    const { cron_name, cron_scheduled_at, cron_triggered_at } = (JSON.parse(body) as { meta: Record<string, string> })
      .meta;
    const question: model.Question = {
      ...{ id, cron: String(cron_name), tick: Date.parse(String(cron_scheduled_at)) },
      order: orderIn(body),
      at: Date.parse(String(cron_triggered_at)),
    };
    const outcome = scene.attempt((now) => enqueue(scene.q, [ask.job], now).jobs[0]);
    scene.tidy();
    const placed = model.answer(scene.model, question, scene.now);
    if ('value' in outcome) same(outcome.value?.record.id, placed.job.id);
    else same(outcome.error.details?.existing_job_id, placed.job.id);
    scene.finish();
    if (how === 'die') {
      scene.evict();
      return;
    }
    if ('value' in outcome && outcome.value) ask.answer({ ok: true, value: outcome.value });
    else if ('error' in outcome) ask.answer({ ok: false, error: outcome.error });
    await world.settled();
    scene.tidy();
    model.heed(scene.model, question, placed, scene.now);
    scene.finish();
  }
}

const name = fc.constantFrom('a', 'a', 'b', 'c');
const changeOrder: fc.Arbitrary<ChangeOrder> = fc.oneof(
  { weight: 8, arbitrary: fc.constant('in-time' as const) },
  fc.constantFrom('late' as const, 'overtaken' as const),
);

const cronAsk = {
  expression: fc.oneof(fc.constantFrom('* * * * *', '*/5 * * * *', '@every 90s'), fc.constantFrom(...EXPRESSIONS)),
  zone: fc.constantFrom(...ZONES),
  start: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, fc.constantFrom(-3_600_000, 0, 90_500, 7_200_000)),
  end: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, fc.constantFrom(0, 130_000, 3_600_000)),
  overlap: fc.constantFrom('skip', 'allow', 'cancel_previous', 'enqueue'),
  missed: fc.constantFrom('skip', 'fire_once', 'fire_all'),
  catchup: fc.constantFrom(1, 3, 5),
  limit: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, fc.constantFrom(1, 2, 5)),
  enabled: fc.constantFrom(undefined, undefined, undefined, true, false),
  job: order,
} satisfies { [Part in keyof CronAsk]: fc.Arbitrary<CronAsk[Part]> };

/** Jobs of different entries are different jobs: which of two that are due together comes first is nobody's promise. */
function own<T extends { job?: JobOrder }>(name: string, { job, ...rest }: T): Omit<T, 'job'> & Pick<T, 'job'> {
  const { unique } = job ?? {};
  return { ...rest, ...(job && { job: unique ? { ...job, unique: { ...unique, key: name } } : job }) };
}

export const cronStep: fc.Arbitrary<CronStep> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .record({ name, cron: fc.record(cronAsk), order: changeOrder })
      .map((parts) => ({ op: 'cron-put' as const, ...parts, cron: own(parts.name, parts.cron) })),
  },
  {
    weight: 4,
    arbitrary: fc
      .record({ name, change: fc.record(cronAsk, { requiredKeys: [] }), order: changeOrder })
      .map((parts) => ({ op: 'cron-patch' as const, ...parts, change: own(parts.name, parts.change) })),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('cron-enable' as const), name, enabled: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('cron-trigger' as const), name }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('cron-delete' as const), name, late: fc.boolean() }) },
  {
    weight: 16,
    arbitrary: fc.record({
      op: fc.constant('jump-to-fire' as const),
      past: fc.constantFrom(-1, 0, 0, 1, 20_000, 60_000, 60_001, 300_000, 1_000_000),
    }),
  },
);

export const answers = fc.record({
  op: fc.constant('answer' as const),
  how: fc.constantFrom('all' as const, 'all' as const, 'one' as const, 'busy' as const, 'die' as const),
});

async function prepare(scene: Scene, step: StepOf<'cron-put' | 'cron-patch'>): Promise<Turn> {
  const definition = await readCronStep(scene, step);
  return { play: () => put(scene, step, definition) };
}

export const area: Area<CronStep> = {
  kinds: {
    'cron-put': {
      prepare,
      plainer: (step) => plainerOrders(step.cron.job).map((job) => ({ ...step, cron: { ...step.cron, job } })),
    },
    'cron-patch': { prepare },
    'cron-enable': onCron,
    'cron-trigger': onCron,
    'cron-delete': onCron,
    answer: { prepare: (scene, { how }) => ({ play: () => answer(scene, how) }), silent: true, isLonger: true },
    'jump-to-fire': {
      prepare: ({ world, model: { crons } }, { past }) => ({
        play: () => {
          world.now = Math.max(world.now, model.fireAt({ crons }) + past);
        },
      }),
      silent: true,
    },
  },
  async clear(scene) {
    for (const name of [...scene.model.crons.entries.keys()]) {
      onCron(scene, { op: 'cron-delete', name, late: false });
      scene.finish();
    }
    await answer(scene, 'all');
  },
};
