/**
 * Jobs that a handler waits for. Its queue starts those of its own in the transaction that ends the run, and posts the
 * others; it records their ends, and wakes the handler when all have ended, or one has failed.
 */
import type { Enqueuer } from '../../job/attempt/outcome';
import { type Parent, parseChild } from '../../job/envelope/children';
import { type ErrorData, invalidRequest, outcomeOf, refusal, unsupported } from '../../job/errors';
import { own } from '../../job/own';
import type { Awaited, JobBody, NewJob, Snoozed } from '../../job/record';
import {
  endRun,
  isPendingRun,
  MAX_HELD,
  MAX_RUN_DEPTH,
  mayContinue,
  type PlacedEnd,
  RUN_TIMEOUT_MS,
  runErrorOf,
} from '../../job/runs';
import { byMessage } from '../../job/size';
import { StepBook, type Steps } from '../../job/steps';
import { lockedError } from '../../job/undecided';
import type { RunRequest, StepRun } from '../../job/wire';
import type { RunEnding } from '../../rpc/runs';
import { find, findSettled } from '../read/find';
import type { Active } from '../store/active';
import { bodyOf, groupOfRow, historyOf, type JobRow, STATE } from '../store/job-row';
import { move } from '../store/jobs';
import { moveOf } from '../store/moves';
import type { QueueParts, Stored } from '../store/parts';
import { idOf, stateOf } from '../store/rows';
import { checkJobs, enqueueAwaited } from './enqueue';
import { refuseElsewhere, refuseNewcomers } from './may-enqueue';
import { recordBook, recordedSteps, whole } from './steps';

/** The kind of the messages with jobs for other queues. */
export const RUN = 'run';

export interface RunMessage extends Pick<Awaited, 'by' | 'name' | 'claim'> {
  queue: string;
  detached?: true;
  jobs: { place: number; job: NewJob }[];
  /** How often it was divided. */
  round: number;
}

/** Stands for the id of a job of this queue until it is written: sizes are checked before. */
const UNKNOWN_ID = '0'.repeat(36);

interface Child {
  place: number;
  queue: string;
  job: NewJob;
}

/** The runs of one handler that ends its run. Everything is planned before anything is written. */
export class Runs {
  private readonly id: string;
  private readonly body: JobBody;
  private readonly started: { run: StepRun; child: Child }[] = [];
  private readonly posted: { message: RunMessage; part: number }[] = [];
  /** Can this queue take jobs now, without asking for schemas? */
  private readonly isOpen: boolean;

  constructor(
    private readonly q: QueueParts,
    private readonly row: JobRow,
    private readonly active: Active,
    private readonly asked: readonly RunRequest[],
    private readonly enqueuer: Enqueuer | undefined,
    private readonly now: number,
  ) {
    this.id = idOf(q.route, row);
    this.body = bodyOf(row);
    this.isOpen = q.config.defaults?.schemas === undefined && outcomeOf(() => refuseNewcomers(q)).ok;
  }

  get names(): string[] {
    return this.asked.map(({ name }) => name);
  }

  /** Records what is asked for. @returns the moment until which it waits, epoch ms. @throws {ApiError} 400, 413, 422 */
  plan(book: StepBook): number {
    if (this.active.chunk !== undefined) throw unsupported('A handler of chunks cannot wait for jobs.');
    let until = Number.POSITIVE_INFINITY;
    for (const run of this.asked) {
      const before = own(book.steps, run.name);
      if (before && !before.run && !before.begun) {
        throw invalidRequest('runs', `${run.name} is the name of a step, not of a run.`);
      }
      if (!before?.run) this.planOne(book, run);
      else if (isPendingRun(before) && before.until <= this.now) book.replace(run.name, { timed_out: true });
      until = Math.min(until, own(book.steps, run.name)?.until ?? until);
    }
    return until;
  }

  private planOne(book: StepBook, asked: RunRequest): void {
    const { name, jobs, timeout_ms = RUN_TIMEOUT_MS, all, stop, detached, undo } = asked;
    if (!jobs) throw invalidRequest('runs', `The run ${name} has no record, so it must name its jobs.`);
    const planned = jobs.map((job, place) => outcomeOf(() => this.childOf(asked, job, place)));
    const first = planned.find((outcome) => outcome.ok)?.value;
    const run: StepRun = {
      queue: first?.queue ?? this.q.name,
      type: String(jobs[0]?.type),
      claim: this.active.claim,
      ...(detached && { detached: true }),
    };
    const children = planned.flatMap((outcome) => (outcome.ok ? [outcome.value] : []));
    const idOfChild = (child: Child | undefined) => (child && this.isOwn(child) ? UNKNOWN_ID : null);
    if (all) {
      const ids = planned.map((outcome) => idOfChild(outcome.ok ? outcome.value : undefined));
      Object.assign(run, { ids, jobs: jobs.length, ended: 0, failed: 0, ...(stop && { stop: true }) });
      if (children.some(({ queue }) => queue !== run.queue)) {
        run.queues = planned.map((outcome) => (outcome.ok ? outcome.value.queue : run.queue));
      }
    } else if (idOfChild(first) !== null) run.id = UNKNOWN_ID;
    book.put(name, { until: this.now + timeout_ms, run, ...(undo && { undo }) });
    const refused = planned.flatMap((outcome, place) =>
      outcome.ok ? [] : [{ place, error: runErrorOf(outcome.error) }],
    );
    endRun(book, name, own(book.steps, name), refused);
    const record = own(book.steps, name);
    if (!isPendingRun(record)) return;
    for (const child of children.filter((one) => this.isOwn(one))) this.started.push({ run: record.run, child });
    const others = Map.groupBy(
      children.filter((one) => !this.isOwn(one)),
      ({ queue }) => queue,
    );
    for (const [queue, some] of others) this.post(asked, queue, some);
  }

  private post({ name, detached }: RunRequest, queue: string, children: readonly Child[]): void {
    for (const jobs of byMessage(children, ({ job }) => job)) {
      const message: RunMessage = {
        ...{ by: this.id, name, claim: this.active.claim, queue, round: 0 },
        ...(detached && { detached: true }),
        jobs: jobs.map(({ place, job }) => ({ place, job })),
      };
      this.posted.push({ message, part: this.posted.length });
    }
  }

  private readonly isOwn = ({ queue }: Child): boolean => this.isOpen && queue === this.q.name;

  /** @throws {ApiError} why the job can never start */
  private childOf(run: RunRequest, given: NonNullable<RunRequest['jobs']>[number], place: number): Child {
    const { q, id, body, row, active } = this;
    const parent: Parent = { id, meta: body.meta ?? {} };
    const path = run.all ? `jobs[${place}]` : 'job';
    const written = given as unknown as Record<string, unknown>;
    const { queue, job, body: read, unique } = parseChild(written, parent, this.now, path);
    if (unique) throw unsupported('A job that is waited for cannot be unique.', { field: 'unique' });
    for (const field of ['id', 'pending'] as const) {
      if (job[field] !== undefined) throw unsupported(`A job that is waited for cannot have ${field}.`, { field });
    }
    if (this.enqueuer) refuseElsewhere(this.enqueuer, queue);
    const depth = (body.awaited?.depth ?? 0) + 1;
    if (depth > MAX_RUN_DEPTH) {
      throw refusal(422, 'too_deep', `More than ${MAX_RUN_DEPTH} jobs would wait for one another.`, {
        details: { depth },
      });
    }
    const group = q.store.gates.isStrict ? groupOfRow(row) : undefined;
    const before = body.awaited?.holds ?? [];
    const holds = group === undefined ? before : [...before, [q.name, group] as [string, string]].slice(-MAX_HELD);
    if (job.group !== undefined && holds.some(([where, held]) => where === queue && held === job.group)) {
      throw deadlock(id, job.group, queue);
    }
    const awaited: Awaited = {
      ...{ by: id, queue: q.name, name: run.name, claim: active.claim, depth },
      ...(run.all && { index: place }),
      ...(holds.length > 0 && { holds }),
    };
    const child: NewJob = { ...job, awaited: true, body: JSON.stringify({ ...read, awaited }) };
    if (this.isOwn({ place, queue, job })) checkJobs(q, [child], this.now);
    return { place, queue, job: child };
  }

  /** Enqueues those of this queue, and posts the others. One row for many; one for each message. */
  start(): void {
    const { q, now, id, active } = this;
    const rows = enqueueAwaited(
      q,
      this.started.map(({ child }) => child.job),
      now,
    );
    for (const [at, { run, child }] of this.started.entries()) {
      const startedId = rows[at] as string;
      if (run.ids) run.ids[child.place] = startedId;
      else run.id = startedId;
    }
    for (const { message, part } of this.posted) {
      q.store.outbox.post(RUN, `${id} ${active.claim} ${part}`, JSON.stringify(message), now);
    }
  }
}

const deadlock = (id: string, group: string, queue: string) =>
  refusal(
    422,
    'deadlock',
    `Job ${id} holds the group ${JSON.stringify(group)} of queue ${queue} until it ends, so a job of that group that it waits for could never start.`,
    {
      details: { job_id: id, group, queue },
      hint: 'Give the job another group, or enqueue it in a step and do not wait for it.',
    },
  );

/** @throws {ApiError} 503 while one of these jobs is being decided about, or moves to another queue */
function refuseHeld(q: Stored, row: JobRow, id: string): void {
  const { locks, outbox } = q.store;
  if (row.state !== STATE.held && !locks.has(row.key) && !moveOf(outbox, row.key)) return;
  throw lockedError(id, `Job ${id} is part of an operation that is being decided; try again.`);
}

/**
 * Records ends of jobs that handlers wait for, and wakes these handlers. One row for each of them, two more to wake it.
 * @returns those whose handlers are not here @throws {ApiError} 503 while such a job cannot change; then nothing has
 */
export function endRuns(q: QueueParts, endings: readonly RunEnding[], now: number): RunEnding[] {
  const unknown: RunEnding[] = [];
  const waiting: { row: JobRow; ended: RunEnding[] }[] = [];
  for (const [id, ended] of Map.groupBy(endings, ({ by }) => by)) {
    const found = findSettled(q, id);
    if (!found) unknown.push(...ended);
    if (!found?.row) continue;
    refuseHeld(q, found.row, id);
    waiting.push({ row: found.row, ended });
  }
  for (const { row, ended } of waiting) {
    changeRuns(q, row, now, (book) => {
      for (const [name, some] of Map.groupBy(ended, (ending) => ending.name)) {
        const { claim } = own(book.steps, name)?.run ?? {};
        const ends = some.flatMap((ending) => (ending.claim === claim ? [endOf(ending)] : []));
        endSome(q, row, book, name, ends);
      }
    });
  }
  return unknown;
}

function endOf({ index: place, id, result, omitted, error }: RunEnding): PlacedEnd {
  const how = error ? { error } : omitted === undefined ? { result: JSON.parse(result ?? 'null') } : { omitted };
  return { ...(id !== undefined && { id }), ...how, place };
}

function endSome(q: Stored, row: JobRow, book: StepBook, name: string, ends: readonly PlacedEnd[]): void {
  const record = own(book.steps, name);
  // The job has ended: only what it left to itself is still of use to it.
  if (ends.length === 0 || (row.ended_at !== null && !record?.run?.detached)) return;
  q.store.runs.cancel(endRun(book, name, whole(q, row.key, name, record), ends));
}

/** Changes the records of a job, and wakes it if it may continue. */
function changeRuns(q: QueueParts, row: JobRow, now: number, change: (book: StepBook) => void): void {
  const book = new StepBook(q.store.checkpoints.steps(row.key), now);
  change(book);
  if (!book.isChanged) return;
  q.store.changes++;
  recordBook(q, row, book, now);
  wake(q, row, book.steps, now);
}

/** Continues a job that sleeps until its runs have ended, if they have. */
function wake(q: QueueParts, row: JobRow, steps: Steps, now: number): void {
  wakeIf(q, row, ({ claim, runs }) => claim === row.claims && runs !== undefined && mayContinue(steps, runs), now);
}

/** Continues a job now that sleeps, if it sleeps for this. Two rows. @returns the job as it is then */
export function wakeIf(q: QueueParts, row: JobRow, isFor: (snoozed: Snoozed) => boolean, now: number): JobRow {
  const state = stateOf(row, q.store.leases.active.has(row.key), now);
  if (state !== 'scheduled' && state !== 'retryable') return row;
  const { snoozed, ...history } = historyOf(row);
  return snoozed && isFor(snoozed) ? move(q, row, 'signal', { availableAt: now, history }, now) : row;
}

/** Does the handler still wait for the jobs of a message? Its job does not move before they have begun. */
export function isAwaited(q: QueueParts, { by, name, claim, detached }: RunMessage): boolean {
  const row = find(q, by)?.row;
  if (!row) return detached === true;
  const record = own(recordedSteps(q, row.key), name);
  return isPendingRun(record) && record.run.claim === claim && (row.ended_at === null || detached === true);
}

export interface StartedJob {
  place: number;
  id?: string;
  error?: ErrorData;
}

/** What became of the jobs of a message: their ids, or why one was refused for good. @throws {ApiError} 503 */
export function noteStarted(q: QueueParts, message: RunMessage, ends: readonly StartedJob[], now: number): void {
  const row = find(q, message.by)?.row;
  if (row) refuseHeld(q, row, message.by);
  if (!isAwaited(q, message)) {
    const ids = ends.flatMap(({ id }) => (id === undefined ? [] : [{ id, queue: message.queue }]));
    if (!message.detached) q.store.runs.cancel(ids);
    return;
  }
  if (!row) return;
  changeRuns(q, row, now, (book) => {
    const record = own(book.steps, message.name);
    if (!isPendingRun(record)) return;
    const { run, until } = record;
    const started = ends.filter(({ id }) => id !== undefined);
    if (started.length > 0) {
      const ids = run.ids && [...run.ids];
      for (const { place, id = null } of started) if (ids) ids[place] = id;
      book.put(message.name, { until, run: { ...run, ...(ids ? { ids } : { id: started[0]?.id as string }) } }, true);
    }
    const refused = ends.flatMap(({ place, error }) => (error ? [{ place, error: runErrorOf(error) }] : []));
    endSome(q, row, book, message.name, refused);
  });
}
