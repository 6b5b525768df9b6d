/** What comes many at a time: reports of which each has its own answer, and jobs that are accepted one by one. */
import fc from 'fast-check';
import { readReports } from '../../src/job/attempt/read-report';
import type { Outcome } from '../../src/job/errors';
import { enqueueEach } from '../../src/queue/jobs/enqueue';
import { logOf } from '../../src/queue/jobs/progress';
import { reportEach } from '../../src/queue/jobs/report';
import type { EachReceipt, EnqueuedJob } from '../../src/rpc/receipts';
import type { Report, Reported } from '../../src/rpc/workers';
import { holds, same } from './agree';
import type { Area, Turn } from './area';
import { expectPlaced, plainerOrders } from './jobs';
import type { JobOrder, ModelJob } from './model';
import * as rules from './model-reports';
import { attempt, order, pick } from './orders';
import { failureOf, named, pickForReport, resultOf } from './reports';
import type { Scene } from './scene';
import type { StepOf } from './steps';
import { write } from './texts';
import { newJob } from './wire';

/** A report among others. */
export interface Item {
  pick: number;
  attempt: 'right' | 'stale' | 'none';
  how: 'ack' | 'plain' | 'requeue' | 'final' | 'retry-in' | 'snooze' | 'progress' | 'step';
  /** Of a snooze, ms. */
  in: number;
  mark: number;
  /** How long the result of its step is; absent: short. */
  kib?: number | undefined;
  /** It brings a line of the log, where it ends the attempt. */
  logs?: boolean | undefined;
}

export type BatchStep =
  /** In the answer there is room for so many bytes of steps; absent: for all. */
  | { op: 'report-each'; items: Item[]; worker: 'right' | 'none'; room?: number | undefined }
  /** Perhaps the answer is lost, and they are sent again. */
  | { op: 'enqueue-each'; jobs: JobOrder[]; again: boolean };

/** Bytes of steps that an answer may hold: enough for all. */
const MAX_TOLD = 100_000_000;

/** KiB of the large results of a job, and of those that come with the end of a run. */
const MOST_KIB = 8_192;
const MOST_AT_END_KIB = 1_024;

/** A report as it is sent, and what the model knows of it. */
export interface Sent extends Item {
  job: string;
  by: rules.Named;
  wire: Record<string, unknown>;
  /** What it says in the log. */
  line?: string | undefined;
}

/** The reports that these items mean now. @param worker who sends them; absent: it does not say */
export function sentOf(scene: Scene, items: readonly Item[], worker?: string): Sent[] {
  return items.flatMap((item) => {
    const job = pickForReport(scene, item.pick);
    if (!job) return [];
    const by = { attempt: named(job, item.attempt), worker };
    const name = { job_id: job.id, ...(by.attempt !== undefined && { attempt: by.attempt }) };
    const line = item.logs && !NOTES.has(item.how) ? `${LINE}${++scene.operations}` : undefined;
    const log = line && { log: [{ level: 'info', message: line }] };
    return [{ ...item, job: job.id, by, line, wire: { ...name, ...wireOf(job, item), ...log } }];
  });
}

/** How the lines begin that reports bring. */
const LINE = 'line ';

/** Reports that do not end the attempt. */
const NOTES: ReadonlySet<Item['how']> = new Set(['progress', 'step']);

/** The result of a step. */
const resultOfStep = (mark: number, kib: number | undefined): unknown =>
  kib === undefined ? mark : write({ of: 'ascii', length: 1_024 * kib });

function wireOf(job: ModelJob, { how, in: after, mark, kib }: Item): Record<string, unknown> {
  const result = resultOfStep(mark, kib);
  const steps = { [`s${mark}`]: { result } };
  const error = failureOf();
  switch (how) {
    case 'ack':
      return { action: 'ack', result: JSON.parse(resultOf(job.id, undefined)) };
    case 'progress':
      return { action: 'progress', progress: 0.5 };
    case 'step':
      return { action: 'step', name: `s${mark}`, result };
    case 'snooze':
      return { action: 'nack', requeue: true, attempt_used: false, snooze: { in: after, steps } };
    case 'requeue':
      return { action: 'nack', error, requeue: true };
    case 'final':
      return { action: 'nack', error: { ...error, retryable: false } };
    case 'retry-in':
      return { action: 'nack', error: { ...error, retry_in: 777 } };
    case 'plain':
      return { action: 'nack', error };
  }
}

/** The reports as the queue reads them. */
export function readSent(scene: Scene, sent: readonly Sent[], worker?: string): Report[] {
  const read = readReports(
    sent.map(({ wire }) => wire),
    'reports',
    worker,
    scene.now,
  );
  return read.map((report) => {
    if (!report.ok) throw new Error(`a report cannot be read: ${report.error.message}`);
    return report.value;
  });
}

/**
 * This must have become of them, one after the other.
 * @param room for steps that are told, bytes; it shrinks. Absent: nobody knows
 */
export function reported(
  scene: Scene,
  sent: readonly Sent[],
  outcomes: readonly Outcome<Reported>[],
  room?: { bytes: number },
): void {
  same(outcomes.length, sent.length, 'outcomes');
  for (const [index, item] of sent.entries()) {
    const job = scene.model.jobs.find(({ id }) => id === item.job) as ModelJob;
    const outcome = outcomes[index] as Outcome<Reported>;
    // A claim in the same transaction found it too old to start: before this report, unless that was told otherwise.
    if (!outcome.ok || outcome.value.state === 'discarded') scene.model.expireIfFound(job, scene.now);
    const before = job.state;
    const kept = job.marks?.has(item.mark)
      ? JSON.stringify({ result: resultOfStep(item.mark, job.long?.[item.mark]) })
      : undefined;
    if (item.line) job.logged ??= new Set();
    const status = tell(scene, job, item);
    same(outcome.ok ? 200 : outcome.error.status, status, `${item.how} of ${job.id} in ${before}`);
    if (!outcome.ok) continue;
    if (item.line) job.logged?.add(item.line);
    const { state, attempt, due_at, step, step_omitted: isOmitted = false } = outcome.value;
    // A dead letter that is not kept is told of once more.
    const isGone = job.state === 'gone' && job.dead;
    same(state, isGone ? 'discarded' : scene.model.stateOf(job, scene.now), `state after ${item.how} of ${job.id}`);
    same(attempt, job.attempt, `attempt after ${item.how} of ${job.id}`);
    const waits = state === 'retryable' || state === 'scheduled';
    same(due_at, waits ? job.availableAt : undefined, `when ${job.id} goes on`);
    if (item.how !== 'step') continue;
    const mayOmit = kept !== undefined && (room === undefined || kept.length > room.bytes);
    holds(isOmitted ? mayOmit : !mayOmit || room === undefined, () => `a step of ${job.id}, omitted: ${isOmitted}`);
    if (isOmitted) continue;
    same(step, kept, `step of ${job.id}`);
    if (kept !== undefined && room) room.bytes -= kept.length;
  }
}

/** The job has done a step. @returns false: with it, its steps would be too long */
function noted(job: ModelJob, { mark, kib }: Item, most: number): boolean {
  if (kib === undefined || job.marks?.has(mark)) return true;
  const long = { ...job.long, [mark]: kib };
  if (Object.values(long).reduce((sum, n) => sum + n, 0) > most) return false;
  job.long = long;
  return true;
}

function tell({ model, now }: Scene, job: ModelJob, item: Sent): number {
  const { how, by, in: after, mark } = item;
  // Something else is being decided about it.
  if (job.undecided !== undefined && job.state !== 'gone') return 503;
  switch (how) {
    case 'ack':
      return rules.acked(model, job, by, now);
    case 'snooze':
      if (rules.isRunning(job, by) && !noted(job, item, MOST_AT_END_KIB)) return 413;
      return rules.snoozed(model, job, by, now, { in: after, mark, signal: false });
    case 'progress':
      return rules.progressed(model, job, by, now);
    case 'step': {
      const status = rules.mayNote(job, by);
      if (status !== 200) return status;
      if (!noted(job, item, MOST_KIB)) return 413;
      job.marks = (job.marks ?? new Set()).add(mark);
      return 200;
    }
    default:
      return rules.nacked(model, job, by, now, { how });
  }
}

/** Many reports in one operation. */
function reportMany(scene: Scene, { items, worker, room: bytes = MAX_TOLD }: StepOf<'report-each'>): void {
  const first = pickForReport(scene, items[0]?.pick ?? 1);
  const sender = worker === 'right' ? first?.lease?.worker : undefined;
  const sent = sentOf(scene, items, sender);
  const reports = readSent(scene, sent, sender);
  const [room, left] = [{ bytes }, { bytes }];
  // One transaction takes as many as are not too much work for it.
  for (let from = 0; from < sent.length; ) {
    const some = reports.slice(from);
    const { saves } = scene.world;
    const outcomes = scene.write((now) => reportEach(scene.q, some, now, () => 0.5, room));
    const taken = sent.slice(from, from + outcomes.length);
    const saved = scene.world.saves - saves;
    holds(saved <= mostSaves(taken), () => `${saved} rows with steps are written by ${taken.length} reports`);
    scene.tidy();
    holds(outcomes.length > 0, () => 'none of the reports was taken');
    reported(scene, taken, scene.weighed(outcomes), left);
    from += outcomes.length;
  }
}

/** The steps of a job are written once by all reports about it, and once more by each that ends an attempt. */
function mostSaves(sent: readonly Sent[]): number {
  const about = new Set(sent.flatMap(({ how, job }) => (how === 'step' || how === 'snooze' ? [job] : [])));
  return about.size + sent.filter(({ how }) => !NOTES.has(how)).length;
}

/** What is refused leaves nothing in the log, and what is accepted is there once. */
function compareLogs({ q, model }: Scene): void {
  for (const { id, state, isMoving, logged } of model.jobs) {
    if (!logged || state === 'gone' || isMoving) continue;
    // Handlers that are called log what they like.
    const lines = logOf(q, id).flatMap(({ message }) => (message.startsWith(LINE) ? message : []));
    const wrong = lines.find((line, index) => !logged.has(line) || lines.indexOf(line) !== index);
    holds(wrong === undefined, () => `${wrong} is in the log of ${id}, of ${lines.join()}`);
  }
}

/** Jobs that are accepted one by one. */
async function prepareEach(scene: Scene, step: StepOf<'enqueue-each'>): Promise<Turn> {
  const jobs = await Promise.all(step.jobs.map((order) => newJob(order, scene.now)));
  const key = { key: `each-${++scene.operations}`, hash: 'the same' };
  return {
    play() {
      const { q } = scene;
      // The answer is lost, and they are sent again.
      const [receipt, replayed] = scene.write((now) => {
        const first = enqueueEach(q, jobs, step.again ? key : undefined, now);
        return [first, step.again ? enqueueEach(q, jobs, key, now) : undefined];
      });
      scene.tidy();
      accepted(scene, step.jobs, receipt);
      if (!replayed) return;
      // What was refused as a whole has written nothing, so it is judged again.
      same(replayed.replayed, receipt.outcomes.some(({ ok }) => ok) || undefined, 'sent again');
      same(idsOf(replayed), idsOf(receipt), 'sent again');
    },
  };
}

const idsOf = ({ outcomes }: EachReceipt) => outcomes.map((outcome) => outcome.ok && outcome.value.record.id);

function accepted(scene: Scene, orders: readonly JobOrder[], { outcomes }: EachReceipt): void {
  same(outcomes.length, orders.length, 'outcomes');
  for (const [index, order] of orders.entries()) {
    const outcome = outcomes[index] as Outcome<EnqueuedJob>;
    expectPlaced(scene, [order], outcome.ok ? { value: { jobs: [outcome.value] } } : { error: outcome.error });
  }
}

export const item: fc.Arbitrary<Item> = fc.record({
  ...{ pick, attempt },
  how: fc.constantFrom(
    ...(['ack', 'ack', 'ack', 'plain', 'plain', 'requeue', 'final', 'retry-in', 'snooze', 'progress', 'step'] as const),
  ),
  in: fc.constantFrom(0, 300, 2_000),
  mark: fc.constantFrom(0, 0, 1),
  logs: fc.constantFrom(undefined, undefined, true),
});

/** Reports, some of them about the same job. */
export const items: fc.Arbitrary<Item[]> = fc
  .tuple(fc.array(item, { minLength: 1, maxLength: 6 }), fc.boolean())
  .map(([all, same]) => (same ? all.map((one) => ({ ...one, pick: all[0]?.pick ?? 1 })) : all));

export const batchSteps = [
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('report-each' as const),
      items,
      worker: fc.constantFrom('right' as const, 'none' as const),
      room: fc.constantFrom(undefined, undefined, 0, 20),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('enqueue-each' as const),
      jobs: fc.array(order, { minLength: 1, maxLength: 5 }),
      again: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.constant(true)),
    }),
  },
];

/** Lists with one thing less. */
export function fewer<T>(all: readonly T[]): T[][] {
  return all.length > 1 ? all.map((_, index) => all.toSpliced(index, 1)) : [];
}

export const area: Area<BatchStep> = {
  kinds: {
    'report-each': {
      prepare: (scene, step) => ({ play: () => reportMany(scene, step) }),
      plainer: (step) => fewer(step.items).map((items) => ({ ...step, items })),
    },
    'enqueue-each': {
      prepare: prepareEach,
      plainer: (step) =>
        [
          ...fewer(step.jobs),
          ...step.jobs.flatMap((job, index) => plainerOrders(job).map((order) => step.jobs.with(index, order))),
        ].map((jobs) => ({ ...step, jobs })),
    },
  },
  steps: batchSteps,
  compare(scene, depth) {
    if (depth !== 'wake') compareLogs(scene);
  },
};
