/** What comes many at a time: reports of which each has its own answer, and jobs that are accepted one by one. */
import fc from 'fast-check';
import { readReports } from '../../src/job/attempt/read-report';
import type { Outcome } from '../../src/job/errors';
import { enqueueEach } from '../../src/queue/jobs/enqueue-each';
import { reportEach } from '../../src/queue/jobs/report-each';
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
import { newJob } from './wire';

/** A report among others. */
export interface Item {
  pick: number;
  attempt: 'right' | 'stale' | 'none';
  how: 'ack' | 'plain' | 'requeue' | 'final' | 'retry-in' | 'snooze' | 'progress' | 'step';
  /** Of a snooze, ms. */
  in: number;
  mark: number;
}

export type BatchStep =
  | { op: 'report-each'; items: Item[]; worker: 'right' | 'none' }
  /** Perhaps the answer is lost, and they are sent again. */
  | { op: 'enqueue-each'; jobs: JobOrder[]; again: boolean };

/** Bytes of steps that an answer may hold: enough for all. */
const MAX_TOLD = 1_000_000;

/** A report as it is sent, and what the model knows of it. */
export interface Sent extends Item {
  job: string;
  by: rules.Named;
  wire: Record<string, unknown>;
}

/** The reports that these items mean now. @param worker who sends them; absent: it does not say */
export function sentOf(scene: Scene, items: readonly Item[], worker?: string): Sent[] {
  return items.flatMap((item) => {
    const job = pickForReport(scene, item.pick);
    if (!job) return [];
    const by = { attempt: named(job, item.attempt), worker };
    const name = { job_id: job.id, ...(by.attempt !== undefined && { attempt: by.attempt }) };
    return [{ ...item, job: job.id, by, wire: { ...name, ...wireOf(job, item) } }];
  });
}

function wireOf(job: ModelJob, { how, in: after, mark }: Item): Record<string, unknown> {
  const steps = { [`s${mark}`]: { result: mark } };
  const error = failureOf();
  switch (how) {
    case 'ack':
      return { action: 'ack', result: JSON.parse(resultOf(job.id, undefined)) };
    case 'progress':
      return { action: 'progress', progress: 0.5 };
    case 'step':
      return { action: 'step', name: `s${mark}`, result: mark };
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

/** This must have become of them, one after the other. */
export function reported(scene: Scene, sent: readonly Sent[], outcomes: readonly Outcome<Reported>[]): void {
  same(outcomes.length, sent.length, 'outcomes');
  for (const [index, item] of sent.entries()) {
    const job = scene.model.jobs.find(({ id }) => id === item.job) as ModelJob;
    const before = job.state;
    const hadMark = job.marks?.has(item.mark);
    const status = tell(scene, job, item);
    const outcome = outcomes[index] as Outcome<Reported>;
    same(outcome.ok ? 200 : outcome.error.status, status, `${item.how} of ${job.id} in ${before}`);
    if (!outcome.ok) continue;
    const { state, attempt, due_at, step } = outcome.value;
    // A dead letter that is not kept is told of once more.
    const isGone = job.state === 'gone' && job.dead;
    same(state, isGone ? 'discarded' : scene.model.stateOf(job, scene.now), `state after ${item.how} of ${job.id}`);
    same(attempt, job.attempt, `attempt after ${item.how} of ${job.id}`);
    const waits = state === 'retryable' || state === 'scheduled';
    same(due_at, waits ? job.availableAt : undefined, `when ${job.id} goes on`);
    if (item.how === 'step') same(step, hadMark ? JSON.stringify({ result: item.mark }) : undefined);
  }
}

function tell({ model, now }: Scene, job: ModelJob, { how, by, in: after, mark }: Sent): number {
  // Something else is being decided about it.
  if (job.undecided !== undefined && job.state !== 'gone') return 503;
  switch (how) {
    case 'ack':
      return rules.acked(model, job, by, now);
    case 'snooze':
      return rules.snoozed(model, job, by, now, { in: after, mark, signal: false });
    case 'progress':
      return rules.progressed(model, job, by, now);
    case 'step': {
      const status = rules.mayNote(job, by);
      if (status === 200) job.marks = (job.marks ?? new Set()).add(mark);
      return status;
    }
    default:
      return rules.nacked(model, job, by, now, { how });
  }
}

/** Many reports in one operation. */
function reportMany(scene: Scene, { items, worker }: StepOf<'report-each'>): void {
  const first = pickForReport(scene, items[0]?.pick ?? 1);
  const sender = worker === 'right' ? first?.lease?.worker : undefined;
  const sent = sentOf(scene, items, sender);
  const reports = readSent(scene, sent, sender);
  // One transaction takes as many as are not too much work for it.
  for (let from = 0; from < sent.length; ) {
    const left = reports.slice(from);
    const outcomes = scene.write((now) => reportEach(scene.q, left, now, () => 0.5, { bytes: MAX_TOLD }));
    scene.tidy();
    holds(outcomes.length > 0, () => 'none of the reports was taken');
    reported(scene, sent.slice(from, from + outcomes.length), scene.weighed(outcomes));
    from += outcomes.length;
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
      same(replayed.replayed, true, 'sent again');
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
};
