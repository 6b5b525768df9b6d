/** A job's run as rows on one time axis: attempts, steps, sleeps, signals and single moments. Times in epoch ms. */
import type { JobAttempt, TimelineEntry } from '../../../contract/jobs';
import { stepsInOrder } from '../../../job/step-order';
import type { JobStep } from '../../../job/wire';
import { BAD, GOOD, type Look } from '../../components/text';
import { percent } from '../../core/format';
import { isAsleep, type Job } from './types';

export interface TraceRow {
  key: string;
  name: string;
  /** Inside an attempt. */
  isInner?: boolean;
  state?: string;
  look?: Look;
  from: number;
  to: number;
  /** When the wait before it began. */
  waits?: number | undefined;
  /** Its times are not on record: it lies somewhere in between. */
  isRough?: boolean;
  /** A single moment; `from` and `to` are the same unless it is due later. */
  isMoment?: boolean;
  brief?: string | undefined;
  attempt?: JobAttempt;
  step?: JobStep;
}

const LOOKS: Readonly<Record<JobAttempt['state'], Look>> = {
  failed: BAD,
  active: ['violet', 'active'],
  completed: GOOD,
};
const WAITING: Look = ['neutral', 'waiting'];

const timeOf = (at: string | null | undefined): number | undefined => (at ? Date.parse(at) : undefined);

export function spansOf(job: Job, now: number): TraceRow[] {
  const attempts = attemptSpans(job, now);
  const created = Date.parse(job.created_at);
  const from = attempts[0]?.from ?? created;
  const to = Math.max(from, ...attempts.map((one) => one.to));
  const first: TraceRow = { key: 'created', name: 'Created', from: created, to: created, isMoment: true };
  // Sorting keeps the order of what began in the same millisecond.
  return [first, ...attempts, ...stepSpans(job, { from, to }), ...momentSpans(job, now)].sort(
    (a, b) => a.from - b.from,
  );
}

function attemptSpans(job: Job, now: number): TraceRow[] {
  const created = Date.parse(job.created_at);
  const began = timeOf(job.first_started_at);
  const spans = job.attempts.map((attempt, index): TraceRow => {
    const isFirst = index === 0 && attempt.attempt === 1;
    const to = timeOf(attempt.ended_at) ?? now;
    // A sleep inside an attempt moves `started_at`.
    const from = Math.min(to, (isFirst ? began : undefined) ?? timeOf(attempt.started_at) ?? to);
    const waits = attempt.delay_ms === undefined ? (isFirst ? created : from) : from - attempt.delay_ms;
    const { type = '', message = '' } = attempt.error ?? {};
    return {
      ...{ key: `attempt ${attempt.attempt} ${attempt.ended_at}`, name: `Attempt ${attempt.attempt}`, from, to, waits },
      ...{ state: attempt.state, look: LOOKS[attempt.state], brief: attempt.error && `${type} ${message}`, attempt },
    };
  });
  const next = { key: 'next', name: `Attempt ${job.attempt + 1}`, look: WAITING, to: now };
  if (isAsleep(job)) {
    const from = (spans.length === 0 ? began : undefined) ?? timeOf(job.started_at) ?? now;
    spans.push({ ...next, state: 'asleep', from });
  }
  const due = timeOf(job.next_attempt_at);
  if (due !== undefined)
    spans.push({ ...next, state: 'due', from: now, to: due, isMoment: true, waits: spans.at(-1)?.to });
  return spans;
}

/** The end of a step is on record, of a sleep its beginning too; earlier versions have neither for steps. */
const endOf = ({ signal, until, at }: JobStep): number | undefined => until ?? signal?.at ?? at;

function stepSpans({ steps, waiting_for: waiting }: Job, run: Pick<TraceRow, 'from' | 'to'>): TraceRow[] {
  let { from } = run;
  const spans = stepsInOrder(steps).map(([name, step]): TraceRow => {
    const end = endOf(step);
    const isPending = step.until !== undefined && step.until > run.to;
    const since = (step.until && step.at) ?? (isPending && waiting ? Date.parse(waiting.since) : undefined);
    const span = {
      key: `step ${name}`,
      name,
      isInner: true,
      step,
      ...stateOf(step, isPending, waiting?.signal === name),
    };
    const begun = Math.min(run.to, Math.max(from, since ?? from));
    const to = Math.min(run.to, Math.max(begun, end ?? run.to));
    if (end !== undefined) from = to;
    return { ...span, from: begun, to, isRough: since === undefined };
  });
  let { to } = run;
  for (const span of spans.toReversed()) {
    const { step = {} } = span;
    if (endOf(step) !== undefined) to = Math.min(to, span.isRough ? span.to : span.from);
    else span.to = Math.max(span.from, to);
  }
  return spans;
}

function stateOf(step: JobStep, isPending: boolean, awaits: boolean): Required<Pick<TraceRow, 'state' | 'look'>> {
  const { run } = step;
  const kind = run ? (run.jobs === undefined ? 'child' : 'children') : 'step';
  if ('result' in step || step.result_bytes !== undefined) return { state: `${kind} done`, look: GOOD };
  if ('error' in step) return { state: `${kind} failed`, look: BAD };
  if (step.signal) return { state: 'signal received', look: ['green', 'events'] };
  if (step.tries !== undefined) return { state: `tried ${step.tries}×`, look: ['amber', 'waiting'] };
  if (step.begun) return { state: 'step begun', look: ['amber', 'waiting'] };
  if (step.until === undefined) return { state: `${run ? kind : 'signal'} timed out`, look: ['amber', 'waiting'] };
  if (run) return { state: `waits for the ${kind}`, look: WAITING };
  return { state: awaits ? 'waits for the signal' : isPending ? 'sleeps' : 'slept', look: WAITING };
}

/** Entries that no span or list shows. A change of state repeats the entry of the same time. */
function momentSpans({ timeline, steps }: Job, now: number): TraceRow[] {
  const attempted = new Set(timeline.flatMap(({ kind, at }) => (/^(attempt_|snoozed)/.test(kind) ? [at] : [])));
  const isNew = ({ kind, at }: TimelineEntry) =>
    !/^(created|log|step|attempt_.*)$/.test(kind) && !(kind === 'state_changed' && attempted.has(at));
  return timeline.filter(isNew).flatMap((entry, index): TraceRow[] => {
    const at = Date.parse(entry.at);
    const span = { key: `${entry.kind} ${index}`, from: at, to: at, isMoment: true };
    if (entry.kind !== 'snoozed') return [{ ...span, ...wordsOf(entry) }];
    // The step that sleeps has its own row.
    if (Object.values(steps).some(({ until = 0 }) => until > at)) return [];
    const until = Math.min(now, Math.max(at, timeOf(String(entry.until)) ?? at));
    return [
      { ...span, name: 'Snoozed', state: until < now ? 'slept' : 'sleeps', look: WAITING, to: until, isMoment: false },
    ];
  });
}

function wordsOf(entry: TimelineEntry): Pick<TraceRow, 'name' | 'brief' | 'look' | 'state'> {
  const { kind, from, to, reason, progress, message, sequence } = entry;
  const text = (value: unknown) => (value === undefined || value === null ? undefined : String(value));
  switch (kind) {
    case 'state_changed':
      return { name: 'State', brief: `${text(from) ?? ''} → ${to}` };
    case 'cancelled':
      return { name: 'Cancelled' };
    case 'discarded':
      return {
        name: entry.dead_letter === true ? 'Became a dead letter' : 'Discarded',
        brief: text(reason)?.replaceAll('_', ' '),
      };
    case 'progress':
      return { name: 'Progress', brief: `${percent(Number(progress))} ${text(message) ?? ''}` };
    case 'checkpoint':
      return { name: `Checkpoint ${sequence}` };
    default:
      return { name: kind };
  }
}
