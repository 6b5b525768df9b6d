/**
 * What cron entries promise: which times fire, which do not and why, each exactly once. A fire is put into the model the
 * moment it must have happened; that the product made the same job of it is for the comparison to find out.
 */
import { fireAfter, fireUntil, type Timing } from './calendar';
import { isOpen, type JobOrder, type Model, type ModelJob } from './model';

/** What a step may ask of an entry. `start` and `end` in epoch ms. */
export interface CronTerms extends Omit<Timing, 'anchor'> {
  overlap: 'skip' | 'allow' | 'cancel_previous' | 'enqueue';
  missed: 'skip' | 'fire_once' | 'fire_all';
  catchup: number;
  limit: number | null;
  enabled: boolean;
  job: JobOrder;
}

/** A fire that waits for what other queues say of it. */
export interface Asked {
  /** Of the job it is to become; empty until the product has chosen it. */
  id: string;
  tick: number;
}

export interface Skip {
  tick: number;
  until?: number;
  at: number;
  reason: string;
  by?: { id: string };
}

export interface ModelCron {
  name: string;
  terms: CronTerms;
  anchor: number;
  /** The next fire; infinite when none will come. */
  nextAt: number;
  /** A defect was met in firing it: it is left alone until then. */
  notBefore: number;
  runs: number;
  fires: number;
  skips: number;
  lastRunAt?: number;
  lastJob?: ModelJob;
  waiting: number[];
  asked: Asked[];
  history: { job: ModelJob; tick: number | undefined; at: number }[];
  skipped: Skip[];
}

/** Entries by name, and the number of the last change to every name there ever was. */
export interface CronBook {
  entries: Map<string, ModelCron>;
  versions: Map<string, number>;
}

/** A fire that is later than this was missed, ms. */
const ON_TIME = 60_000;
const LEAVE_ALONE = 60_000;

export function emptyBook(): CronBook {
  return { entries: new Map(), versions: new Map() };
}

export function timingOf({ terms, anchor }: Pick<ModelCron, 'terms' | 'anchor'>): Timing {
  return { ...terms, anchor: terms.start ?? anchor };
}

/** Creates or replaces an entry: what has happened stays, and the next fire too if the schedule is the same. */
export function putCron(model: Model, name: string, terms: CronTerms, now: number): void {
  const { entries } = model.crons;
  const before = entries.get(name);
  const cron: ModelCron = before ?? {
    ...{ name, terms, anchor: now, nextAt: Number.POSITIVE_INFINITY, notBefore: 0 },
    ...{ runs: 0, fires: 0, skips: 0, waiting: [], asked: [], history: [], skipped: [] },
  };
  const old = cron.terms;
  if (before && JSON.stringify(old) === JSON.stringify(terms)) return;
  const same = (['expression', 'zone', 'start', 'end'] as const).every((part) => old[part] === terms[part]);
  cron.terms = terms;
  cron.notBefore = 0;
  if (!same) cron.anchor = now;
  if (!terms.enabled || terms.overlap !== 'enqueue') cron.waiting = [];
  const goesOn = before && same && old.enabled && terms.enabled && Number.isFinite(cron.nextAt);
  setNext(cron, goesOn ? cron.nextAt : fireAfter(timingOf(cron), now));
  entries.set(name, cron);
}

function setNext(cron: ModelCron, next: number): void {
  cron.nextAt = cron.terms.enabled && !isUsedUp(cron) ? next : Number.POSITIVE_INFINITY;
}

/** What waits, or is asked about, counts as fired until it turns out not to be. */
function isUsedUp({ terms, fires, waiting, asked }: ModelCron): boolean {
  return terms.limit !== null && fires + waiting.length + asked.length >= terms.limit;
}

/** Fires all that is due, before anything else happens at this moment. */
export function fireDue(model: Model, now: number): void {
  const due = [...model.crons.entries.values()].filter((cron) => Math.max(cron.nextAt, cron.notBefore) <= now);
  for (const cron of due.sort((a, b) => a.nextAt - b.nextAt)) {
    const { missed, catchup } = cron.terms;
    const timing = timingOf(cron);
    const last = fireUntil(timing, now);
    let fires: number[] = [];
    if (missed === 'fire_all') {
      for (let tick = cron.nextAt; tick <= now && fires.length < catchup; tick = fireAfter(timing, tick))
        fires.push(tick);
      const left = fireAfter(timing, fires.at(-1) as number);
      if (left <= now) drop(cron, left, last, now);
    } else {
      fires = missed === 'skip' && now - last > ON_TIME ? [] : [last];
      if (fires.length === 0) drop(cron, cron.nextAt, last, now);
      else if (cron.nextAt < last) drop(cron, cron.nextAt, fireUntil(timing, last - 1), now);
    }
    for (const tick of fires) if (!isUsedUp(cron)) judge(model, cron, tick, now);
    cron.notBefore = 0;
    setNext(cron, fireAfter(timing, last));
  }
}

function drop(cron: ModelCron, from: number, until: number, now: number): void {
  skip(cron, { tick: from, ...(until > from && { until }), at: now, reason: 'missed' });
}

function skip(cron: ModelCron, what: Skip): void {
  cron.skips++;
  cron.skipped.push(what);
}

/** What the fire before has left that has not ended. */
function running(cron: ModelCron): Asked | ModelJob | undefined {
  const { asked, lastJob } = cron;
  return asked.at(-1) ?? (lastJob && isOpen(lastJob) ? lastJob : undefined);
}

function judge(model: Model, cron: ModelCron, tick: number, now: number): void {
  const { overlap } = cron.terms;
  const before = running(cron);
  if (overlap === 'enqueue' && (before || cron.waiting.length > 0)) {
    cron.waiting.push(tick);
  } else if (overlap === 'skip' && before) {
    skip(cron, { tick, at: now, reason: 'overlap_skip', by: before });
  } else {
    if (overlap === 'cancel_previous' && before) {
      if (cron.asked.length > 0) for (const { id } of cron.asked.splice(0)) cancelJob(model, id, now);
      else model.cancel(before as ModelJob, now);
    }
    fire(model, cron, tick, now);
  }
}

/** Cancels the job with this id, if there is one that has not ended. */
function cancelJob(model: Model, id: string, now: number): void {
  const job = model.jobs.find((candidate) => candidate.id === id && id !== '');
  if (job && isOpen(job)) model.cancel(job, now);
}

function fire(model: Model, cron: ModelCron, tick: number, now: number): void {
  const { job } = cron.terms;
  if (job.unique?.everywhere) cron.asked.push({ id: '', tick });
  else settle(cron, place(model, cron.name, job, tick, now), tick, now);
}

/** Enqueues the job of a fire. */
function place(model: Model, cron: string, order: JobOrder, tick: number | undefined, now: number, from = now) {
  const placement = model.enqueue([order], now, from);
  if ('refused' in placement) return { job: placement.by, isNew: false };
  if (!('placed' in placement)) throw new Error('no entry fires in a queue that is bounded or drains');
  const [{ job, existing, accumulated }] = placement.placed as [
    { job: ModelJob; existing: boolean; accumulated?: boolean },
  ];
  // What accumulates has become a part of the job of another fire.
  if (!existing && !accumulated) job.fire = { cron, tick };
  return { job, isNew: !existing };
}

/** Notes what became of a fire. */
function settle(
  cron: ModelCron,
  { job, isNew }: { job: ModelJob; isNew: boolean },
  tick: number | undefined,
  now: number,
): void {
  if (!isNew) {
    if (tick !== undefined) skip(cron, { tick, at: now, reason: 'unique', by: job });
    return;
  }
  cron.runs++;
  if (tick !== undefined) cron.fires++;
  cron.lastRunAt = now;
  cron.lastJob = job;
  cron.history.push({ job, tick, at: now });
}

/** After everything else at this moment: fires that waited for a job take its place when it has ended. */
export function fireWaiting(model: Model, now: number): void {
  for (const cron of model.crons.entries.values()) {
    if (cron.notBefore > now || cron.waiting.length === 0 || running(cron)) continue;
    cron.notBefore = 0;
    while (cron.waiting.length > 0 && !running(cron)) fire(model, cron, cron.waiting.shift() as number, now);
    // A limit had counted fires that turned out to enqueue nothing.
    if (!Number.isFinite(cron.nextAt)) setNext(cron, fireAfter(timingOf(cron), now));
  }
}

/** Somebody wants a job now. @returns the one there is, and whether it is new; undefined: refused */
export function trigger(
  model: Model,
  cron: ModelCron,
  now: number,
): { job: ModelJob; outcome: 'new' | 'existing' | 'refused' } {
  const { job: order } = cron.terms;
  const { job, isNew } = place(model, cron.name, order, undefined, now);
  if (!isNew) return { job, outcome: order.unique?.conflict === 'reject' ? 'refused' : 'existing' };
  cron.notBefore = 0;
  settle(cron, { job, isNew }, undefined, now);
  return { job, outcome: 'new' };
}

/** What an ask is about: the fire, the id that its job is to get, and the job as it was when asked. */
export interface Question extends Asked {
  cron: string;
  order: JobOrder;
  /** When it fired. */
  at: number;
}

/** The other queues let the job of a fire in, or say that it exists. */
export function answer(
  model: Model,
  { cron, id, tick, order, at }: Question,
  now: number,
): { job: ModelJob; isNew: boolean } {
  const own = model.jobs.find((job) => job.id === id);
  // An answer that got lost is asked for again: the job is there.
  if (own && own.state !== 'gone') return { job: own, isNew: true };
  if (own) {
    model.jobs.splice(model.jobs.indexOf(own), 1);
    // Nothing is left of the job that was removed, so its deliveries are counted from the first again.
    const known = model.part('deliveries', () => new Set<string>());
    for (const delivery of known) if (delivery.startsWith(`del_${id}_`)) known.delete(delivery);
  }
  const placed = place(model, cron, { ...order, isNamed: true }, tick, now, at);
  if (placed.isNew) placed.job.id = id;
  return placed;
}

/** The answer has arrived. */
export function heed(model: Model, question: Question, placed: { job: ModelJob; isNew: boolean }, now: number): void {
  const cron = model.crons.entries.get(question.cron);
  if (!cron) return;
  if (!cron.asked.some(({ id }) => id === question.id)) {
    // A later fire has taken its place.
    if (placed.isNew) cancelJob(model, question.id, now);
    return;
  }
  cron.asked = cron.asked.filter(({ id }) => id !== question.id);
  cron.notBefore = 0;
  settle(cron, placed, question.tick, now);
  if (!Number.isFinite(cron.nextAt)) setNext(cron, fireAfter(timingOf(cron), now));
}

/** A defect kept an entry from firing. */
export function leaveAlone(cron: ModelCron, now: number): void {
  cron.notBefore = now + LEAVE_ALONE;
}

/** The object was constructed anew, and knows of no defects. @returns whether fires may have waited because of one */
export function forgetDefects(model: Model): boolean {
  let isOpenAgain = false;
  for (const cron of model.crons.entries.values()) {
    isOpenAgain ||= cron.notBefore > 0 && cron.waiting.length > 0;
    cron.notBefore = 0;
  }
  return isOpenAgain;
}

/** When the next entry fires; minus infinity when none does. */
export function fireAt(model: Pick<Model, 'crons'>): number {
  const next = Math.min(...[...model.crons.entries.values()].map(({ nextAt }) => nextAt));
  return Number.isFinite(next) ? next : Number.NEGATIVE_INFINITY;
}

/** The first moment after `now` at which an entry needs a wake; infinite when none does. */
export function nextCronDue(model: Model, now: number): number {
  let next = Number.POSITIVE_INFINITY;
  for (const cron of model.crons.entries.values()) {
    const { nextAt, notBefore, waiting } = cron;
    const moments = [Math.max(nextAt, notBefore), ...(waiting.length > 0 && !running(cron) ? [notBefore] : [])];
    for (const moment of moments) if (moment > now) next = Math.min(next, moment);
  }
  return next;
}
