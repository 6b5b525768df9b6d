/** Checks what was found by the rules of jobs, and sends it: jobs in batches, schedules one by one. */
import type { TocsinClient } from '../../client/client';
import { type CronEntry, wireCron } from '../../client/cron-entry';
import type { EnqueueOutcome } from '../../client/enqueue';
import { parsePayloads } from '../../job/envelope/exact';
import { defined } from '../../job/envelope/fields';
import { parseJson } from '../../job/envelope/json';
import { parseJob } from '../../job/envelope/parse';
import { ApiError } from '../../job/errors';
import { cut } from '../../job/text';
import { messageOf } from '../../job/thrown';
import { ConflictError, InvalidJobError, TocsinError } from '../../producer/errors';
import { type JobOptions, type NewJob, prepare } from '../../producer/job';
import { wired } from '../../producer/names';
import { parseCron } from '../../schedules/definition';
import { orNone } from '../failure';
import type { FoundJob, FoundSchedule } from './found';
import { idOf, placeOf, type Renamed, scheduleNameOf } from './names';
import type { Tally } from './tally';

/** Most of a batch. The server takes 16 MiB. */
const MAX_JOBS = 1000;
const MAX_BYTES = 4 * 1024 * 1024;

/** Tries of a request that the server could not take just now, and the first pause between them, ms. */
const TRIES = 5;
const FIRST_PAUSE_MS = 1000;

export interface Sending {
  /** Absent: everything is checked, nothing is sent. */
  tocsin: TocsinClient | undefined;
  system: string;
  within: string;
  renamed: ReadonlyMap<string, Renamed>;
  tally: Tally;
  now: () => number;
  /** Waits, in ms. */
  pause: (ms: number) => Promise<void>;
}

interface Ready {
  found: FoundJob;
  job: NewJob<string, readonly unknown[], JobOptions & { id: string }>;
}

export class Sender {
  #batch: Ready[] = [];
  #bytes = 0;
  /** Tries that are left to a batch: a queue that stays full is not waited for with each of them. */
  #tries = TRIES;

  constructor(private readonly sending: Sending) {}

  /** Takes a job. It is sent with others, {@link flush} sends the last ones. */
  async job(found: FoundJob): Promise<void> {
    const { system, within, renamed, tally } = this.sending;
    const { queue, type } = placeOf(found, renamed);
    tally.found(found, { queue, type });
    const id = idOf(system, within, found);
    const from = { system, queue: found.queue, id: found.id, ...found.ran };
    const job = { type, args: found.args, options: { ...found.options, queue, id, meta: { migrated_from: from } } };
    const bytes = await this.#checked(found, () => this.#sizeOf(job));
    if (bytes === undefined) return;
    if (this.#batch.length === MAX_JOBS || this.#bytes + bytes > MAX_BYTES) await this.flush();
    this.#batch.push({ found, job });
    this.#bytes += bytes;
  }

  /** What a check answers; undefined: it has thrown, and this was refused. */
  async #checked<T>(found: FoundJob | FoundSchedule, check: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await check();
    } catch (error) {
      const code =
        error instanceof ApiError ? error.data.code : error instanceof TocsinError ? error.code : 'unreadable';
      this.sending.tally.refuse(found, code, messageOf(error));
      return undefined;
    }
  }

  /** Bytes of a job, which is read as the server reads it. @throws {Error} */
  #sizeOf({ type, args, options }: Ready['job']): number {
    const { json } = prepare(type, args, options ?? {});
    parseJob(parseJson(json, parsePayloads) as Record<string, unknown>, { now: this.sending.now() });
    return Buffer.byteLength(json);
  }

  async flush(): Promise<void> {
    const { tocsin, tally } = this.sending;
    const batch = this.#batch;
    this.#batch = [];
    this.#bytes = 0;
    if (!tocsin) for (const { found } of batch) tally.settled(found, 'moved');
    else await this.#send(tocsin, batch);
  }

  /** Sends a batch, and those again that the server could not take just now. */
  async #send(tocsin: TocsinClient, all: readonly Ready[]): Promise<void> {
    let batch = all;
    for (let tries = 1; batch.length > 0; tries++) {
      const isLast = tries >= this.#tries;
      try {
        const { items } = await this.#patiently(() => tocsin.enqueueEach(batch.map(({ job }) => job)));
        batch = batch.filter((ready, index) => !this.#isSettled(ready, items[index] as EnqueueOutcome, isLast));
      } catch (error) {
        if (!isRefusal(error)) throw error;
        return await this.#divided(tocsin, batch, error);
      }
      if (batch.length > 0) await this.#pause(tries);
    }
  }

  /** Finds the jobs for which a whole request was refused, and sends the others. */
  async #divided(tocsin: TocsinClient, batch: readonly Ready[], error: TocsinError): Promise<void> {
    const half = Math.ceil(batch.length / 2);
    const [only] = batch;
    if (half === batch.length && only) return this.sending.tally.refuse(only.found, error.code, error.message);
    await this.#send(tocsin, batch.slice(0, half));
    await this.#send(tocsin, batch.slice(half));
  }

  #isSettled({ found, job }: Ready, { status, job: known, error }: EnqueueOutcome, isLast: boolean): boolean {
    const { tally } = this.sending;
    if (status === 'failed' && error.retryable) {
      if (!isLast) return false;
      this.#tries = 1;
    }
    if (status === 'failed') tally.refuse(found, error.code, error.message);
    else if (status !== 'duplicate') tally.settled(found, 'moved');
    else
      tally.settled(found, (known?.id ?? error?.details?.existingJobId) === job.options?.id ? 'there' : 'superseded');
    return true;
  }

  /** Repeats what may be repeated: ids and names are the same each time. */
  async #patiently<T>(send: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await send();
      } catch (error) {
        const mayRepeat = error instanceof TocsinError && (error.retryable || error.outcomeUnknown);
        if (!mayRepeat || tries === TRIES) throw error;
        await this.#pause(tries, error.retryAfterMs);
      }
    }
  }

  /** @param askedMs by the server */
  #pause(tries: number, askedMs = 0): Promise<void> {
    return this.sending.pause(Math.max(askedMs, FIRST_PAUSE_MS * 2 ** (tries - 1)));
  }

  /** Puts a schedule, unless it is there: an operator may have changed it since. */
  async schedule(found: FoundSchedule): Promise<void> {
    const { system, renamed, tally, tocsin } = this.sending;
    const { queue, type } = placeOf(found, renamed);
    tally.found(found, { queue, type });
    const { expression, timezone, startAt, endAt, limit, missedPolicy, enabled, args } = found;
    const entry = {
      ...{ name: scheduleNameOf(system, found), expression, missedPolicy, overlapPolicy: 'allow' },
      ...defined({ timezone, startAt, endAt, limit, enabled }),
      description: cut(`From ${system}: ${found.id} of ${found.queue}.`, 1000),
      job: { type, args, options: { ...found.options, queue } },
    } satisfies CronEntry;
    if ((await this.#checked(found, () => this.#checkCron(entry))) === undefined) return;
    try {
      if (tocsin && (await orNone(tocsin.cron.get(entry.name), undefined))) return tally.settled(found, 'there');
      if (tocsin) await this.#patiently(() => tocsin.cron.put(entry));
      tally.settled(found, 'moved');
    } catch (error) {
      if (!isRefusal(error)) throw error;
      tally.refuse(found, error.code, error.message);
    }
  }

  /** @throws {Error} for a schedule that the server would refuse, or whose integers it would round */
  async #checkCron(entry: CronEntry): Promise<true> {
    const text = JSON.stringify(wired(wireCron(entry)));
    const value = parseJson(text) as Record<string, unknown>;
    await parseCron(value, { now: this.sending.now() });
    const args = JSON.stringify(entry.job.args);
    if (JSON.stringify(JSON.parse(args)) !== args) throw new Error('a schedule cannot hold integers beyond 2^53');
    return true;
  }
}

/** Is this what was sent, and not the server, that has to change? */
const isRefusal = (error: unknown): error is TocsinError =>
  error instanceof InvalidJobError || error instanceof ConflictError;
