/** What owners and operators do to cron entries, and what other queues say of fires that depend on them. */
import { type CronDefinition, jobOf } from '../../src/job/cron/definition';
import { ApiError } from '../../src/job/errors';
import { mustReadCron, triggerHere } from '../../src/queue/features/cron/fire';
import { enableCron, putCron, removeCron } from '../../src/queue/features/cron/manage';
import { enqueue } from '../../src/queue/jobs/enqueue';
import { same } from './agree';
import * as model from './model-crons';
import { type Scene, statusOf } from './scene';
import type { CronAsk, Step } from './steps';
import { changedCron, newCron, orderIn } from './wire';
import { BUSY } from './world';

type StepOf<Op extends Step['op']> = Extract<Step, { op: Op }>;

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
    const base = q.crons.read(step.name)?.definition;
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
