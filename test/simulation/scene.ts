/** The product and the model side by side, at one moment, and what all steps need of both. */
import { ApiError, type ErrorData } from '../../src/job/errors';
import type { JobBody } from '../../src/job/record';
import { refuseLocked } from '../../src/queue/jobs/lock';
import { list } from '../../src/queue/read/list';
import type { QueueParts } from '../../src/queue/store/parts';
import { holds, same } from './agree';
import type { Extras, Terms } from './area';
import { Model, type ModelJob } from './model';
import { fireDue, fireWaiting, forgetDefects, leaveAlone } from './model-crons';
import type { Step } from './steps';
import { MAX_MESSAGE_BYTES, weightOf } from './texts';
import { mergeHooks, World } from './world';

/** How many new jobs one operation may bring at most. */
const NEWEST = 8;

const DAY_MS = 86_400_000;

export class Scene {
  readonly model = new Model();
  readonly world: World;
  /** An area leaves something alone that a new object would do at once: its wake may be later than that of a new one. */
  mayBeLater = false;
  /** An alarm was lost and nobody has noticed yet. */
  lost = false;
  /** A step is a part of a transaction that others are part of. */
  open: { failed?: unknown } | undefined;
  /** Operations on many jobs so far. */
  operations = 0;

  /** Its answers are weighed. */
  readonly isLarge: boolean;
  /** So little is read at once that claims give less than there is, and chunks start early; but something, always. */
  readonly isNarrow: boolean;

  constructor(
    storage: DurableObjectStorage,
    history: Terms,
    private readonly areas: readonly Pick<Extras<Step>, 'hooks' | 'evicted' | 'observe'>[],
  ) {
    this.isLarge = history.large ?? false;
    this.isNarrow = history.sizes?.chunkJobs !== undefined;
    const hooksOf = (world: World) => mergeHooks(areas.map(({ hooks }) => hooks?.(world, history) ?? {}));
    this.world = new World(storage, history.start, hooksOf, history.sizes);
  }

  get now(): number {
    return this.world.now;
  }

  get q(): QueueParts {
    return this.world.engine.q;
  }

  /** The object dies and is constructed anew. */
  evict(): void {
    this.world.start();
    this.lost = false;
    for (const { evicted } of this.areas) evicted?.(this);
    // Nothing but a transaction looks into fires that wait.
    if (!forgetDefects(this.model)) return;
    this.world.engine.writeNow(() => undefined);
    this.tidy();
    this.finish();
  }

  /** Runs an operation; a refusal is an answer. */
  attempt<T>(operation: (now: number) => T): { value: T } | { error: ErrorData } {
    this.observe();
    try {
      return { value: this.weighed(this.write(operation)) };
    } catch (error) {
      if (error instanceof ApiError) return { error: error.data };
      throw error;
    }
  }

  /** Runs an operation in a transaction of its own, or in the one that is open. @throws what the operation throws */
  write<T>(operation: (now: number) => T): T {
    if (!this.open) return this.world.engine.writeNow(operation);
    try {
      return operation(this.now);
    } catch (error) {
      // The operation leaves nothing behind, although its step goes on.
      this.open.failed = error;
      throw error;
    }
  }

  /** An answer, which must fit into a message. */
  weighed<T>(answer: T): T {
    const weight = this.isLarge ? weightOf(answer) : 0;
    holds(weight <= MAX_MESSAGE_BYTES, () => `an answer takes ${weight} bytes`);
    return answer;
  }

  /** The product has just treated what is due as due: so does the model. */
  tidy(): void {
    // In a transaction with others that was done before the first of them.
    if (this.open) return;
    const { model, now } = this;
    this.findDefects(
      (cron) => Math.max(cron.nextAt, cron.notBefore) <= now && (this.run(cron.name)?.next_at ?? now + 1) <= now,
    );
    model.tidy(now);
    fireDue(model, now);
    this.recognise();
  }

  /** The product's transaction is over, with what it does last. */
  finish(): void {
    const { model, now } = this;
    const looked = this.q.store.crons.waiting(now);
    this.findDefects(
      ({ name, notBefore }) => notBefore <= now && (this.run(name)?.waiting.length ?? 0) > 0 && !looked.includes(name),
    );
    fireWaiting(model, now);
    this.recognise();
    this.world.faulted = false;
    this.observe();
  }

  /** What the product has done by itself since the last operation comes to be known. */
  observe(): void {
    for (const { observe } of this.areas) observe?.(this);
  }

  /** Which entry met the statement that was made to fail is seen from its not having moved. */
  private findDefects(stuck: (cron: ModelCronOf) => boolean): void {
    if (!this.world.faulted) return;
    for (const cron of this.model.crons.entries.values()) {
      if (!stuck(cron)) continue;
      leaveAlone(cron, this.now);
      this.world.faulted = false;
    }
  }

  /** What the product has stored of an entry. */
  run(name: string) {
    return this.world.quietly(() => this.q.store.crons.read(name)?.run);
  }

  /** Finds the jobs that fires of the model must have become, and the questions that they wait for. */
  private recognise(): void {
    const { model } = this;
    for (const { name, asked } of model.crons.entries.values()) {
      if (asked.every(({ id }) => id !== '')) continue;
      const across = this.run(name)?.across ?? [];
      for (const ask of asked) ask.id ||= across.find(({ tick }) => tick === ask.tick)?.id ?? '';
    }
    const unknown = model.jobs.findIndex(({ id }) => id === '');
    if (unknown < 0) return;
    const known = new Set(model.jobs.map(({ id }) => id));
    const fired = model.jobs.splice(unknown);
    const page = this.world.quietly(() => list(this.q, { limit: fired.length + NEWEST, total: false }, this.now));
    const fresh = page.jobs.filter(({ record }) => !known.has(record.id)).reverse();
    for (const { record } of fresh) {
      const { cron_name, cron_scheduled_at } = (JSON.parse(record.body) as JobBody).meta;
      const index = fired.findIndex(
        ({ id, fire }) => id === '' && fire?.cron === cron_name && fire?.tick === Date.parse(String(cron_scheduled_at)),
      );
      const [job] = index < 0 ? [] : fired.splice(index, 1);
      if (!job) continue;
      job.id = record.id;
      model.jobs.push(job);
    }
    const [missing] = fired;
    if (missing) throw new Error(`${missing.fire?.cron} did not fire at ${missing.fire?.tick}`);
  }

  /** Any job; most often one that has not gone. @param pick below 0: counts from the newest of these */
  pick(pick: number): ModelJob | undefined {
    const { jobs } = this.model;
    const there = jobs.filter((job) => job.state !== 'gone');
    if (pick < 0) return there.at(pick);
    const from = pick % 10 === 0 || there.length === 0 ? jobs : there;
    return from[pick % Math.max(1, from.length)];
  }

  /** An operation on one job, and what the model expects of it. */
  onJob(pick: number, operation: (id: string, now: number) => unknown, expected: (job: ModelJob) => number): void {
    const picked = this.pick(pick);
    if (picked) this.onThis(picked, operation, expected);
  }

  /** The same for a job that is known. */
  onThis(picked: ModelJob, operation: (id: string, now: number) => unknown, expected: (job: ModelJob) => number): void {
    const outcome = this.attempt((now) => {
      refuseLocked(this.q, picked.id);
      return operation(picked.id, now);
    });
    this.tidy();
    if (picked.isMoving) {
      holds([404, 409].includes(statusOf(outcome)), () => `${picked.id} changed on its way to another queue`);
      return;
    }
    const isLocked = picked.undecided !== undefined;
    const status = picked.state === 'gone' ? 404 : isLocked ? 503 : expected(picked);
    same(statusOf(outcome), status, `${picked.id} in ${picked.state}`);
  }

  /** Time goes on to the next alarm, or for a day: nothing else brings what is left to its end. @param what who has to see to it */
  nextAlarm(what: string): void {
    const { world } = this;
    holds(world.alarm !== null || this.lost, () => `nothing ${what}`);
    // One that was lost is noticed when it is late.
    world.now = Math.max(world.now + 1, Math.min(world.alarm ?? Number.POSITIVE_INFINITY, world.now + DAY_MS));
    this.lost = false;
    world.fire();
    this.tidy();
  }
}

type ModelCronOf = Parameters<typeof leaveAlone>[0];

/** 200, or that of a refusal. */
export function statusOf(outcome: { value: unknown } | { error: ErrorData }): number {
  return 'error' in outcome ? outcome.error.status : 200;
}
