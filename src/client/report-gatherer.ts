/** Gathers the reports of a running worker: those of one turn share a request, with the next fetch if that is due. */
import type { DeliveryOutcome, Progress } from '../handler/protocol';
import type { StepRecord } from '../handler/step-rules';
import type { StreamMessage } from '../handler/voice';
import type { JobEnvelope } from '../producer/envelope';
import { NotFoundError, TocsinError } from '../producer/errors';
import { bytesOf } from './batch';
import type { Puller } from './pull';
import type { FetchOptions } from './puller';
import { type Held, type Note, type ReportOutcome, type SentReport, stepRecordOf } from './report';

/** Most bytes of a request that reports grow to, and how many it takes; the server takes 16 MiB, and 1000. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;
const MAX_REPORTS = 1000;

/** Requests with reports that are under way at once: those that end meanwhile are gathered. */
const PARALLEL = 4;

/** While one is under way, fewer reports than these wait for others, and no longer than this many ms. */
const ENOUGH = 16;
const GATHER_MS = 5;

type Done = ReportOutcome & { status: 'done' };

interface Waiting {
  report: SentReport;
  bytes: number;
  /** Called where reports cannot go together: sends it in a request of its own, or leaves that to its caller. */
  alone: () => Promise<unknown>;
  /** @param done what it led to, where that was reported */
  resolve: (done?: Done) => void;
  reject: (error: unknown) => void;
}

export class ReportGatherer {
  #waiting: Waiting[] = [];
  #underWay = 0;
  #isScheduled = false;
  /** When the last request with reports was sent, in the time of `performance`, and what sends the next one. */
  #sentAt = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;
  /** The server is of an earlier release: it takes reports one by one. */
  #oneByOne = false;

  /**
   * @param worker writes them, and sends them one by one @param send sends them together
   * @param fetchTakes at the end of a turn: will a fetch take them along? It must {@link fetch}, or {@link flush}
   * @param hasSocket is there one to this queue? @param streamOver writes chunks over it, if that is possible
   */
  constructor(
    private readonly worker: Puller,
    private readonly send: (reports: readonly SentReport[]) => Promise<ReportOutcome[]>,
    private readonly fetchTakes: () => boolean,
    private readonly hasSocket: (queue: string | undefined) => boolean,
    private readonly streamOver: (queue: string | undefined, members: string) => Promise<unknown> | undefined,
  ) {}

  /** How many wait for a request: their jobs run no more. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Reports how a handler ended. @throws {ConflictError} and others, as for a report of its own */
  settle(job: Held, answer: DeliveryOutcome): Promise<unknown> {
    const alone = () => this.worker.settle(job, answer);
    return this.#oneByOne ? alone() : this.#gather(this.worker.writeReport(job, answer), alone);
  }

  async progress(job: Held, { progress, message, data }: Progress): Promise<{ cancelled?: boolean }> {
    const done = await this.#note(job, { action: 'progress', content: { progress, message, data } });
    if (done) return { cancelled: done.state === 'cancelled' };
    return await this.worker.progress(job, { progress, message, data } as Progress);
  }

  async checkpoint(job: Held, state: unknown): Promise<void> {
    const done = await this.#note(job, { action: 'checkpoint', content: { state } });
    if (!done) await this.worker.saveCheckpoint(job, state);
  }

  /** Records a step, as {@link progress}. @returns what was on record before, which has won */
  async step(job: Held, name: string, record: StepRecord): Promise<StepRecord | undefined> {
    const done = await this.#note(job, { action: 'step', content: { name, ...record } });
    // Sent again alone, it gets what is on record, of any size.
    if (!done || done.stepOmitted) return await this.worker.recordStep(job, name, record);
    return done.step && stepRecordOf(done.step);
  }

  /** Do chunks arrive in the order in which they are sent? */
  keepsOrder({ queue }: Held): boolean {
    return this.hasSocket(queue);
  }

  /** Writes chunks of an output stream. @throws {ConflictError} {@link InvalidJobError} */
  async stream(job: Held, message: StreamMessage): Promise<void> {
    const about = `"job_id":${JSON.stringify(job.id)},"name":${JSON.stringify(message.name)}`;
    try {
      const sent = this.streamOver(job.queue, `${about},${this.worker.streamText(job, message).slice(1, -1)}`);
      if (sent) return void (await sent);
    } catch (error) {
      if (!(error instanceof TocsinError && error.retryable)) throw error;
    }
    await this.worker.writeStream(job, message);
  }

  /** @returns undefined: it must go alone */
  async #note(job: Held, note: Note): Promise<Done | undefined> {
    if (this.#oneByOne || !this.hasSocket(job.queue)) return undefined;
    try {
      // The caller sends it alone.
      return await this.#gather(this.worker.writeNote(job, note), async () => undefined);
    } catch (error) {
      // In a request of its own it is repeated.
      if (error instanceof TocsinError && error.retryable) return undefined;
      throw error;
    }
  }

  /** @param alone sends it where reports cannot go together. @returns what it led to; undefined: that was called */
  #gather(report: SentReport, alone: () => Promise<unknown>): Promise<Done | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ report, bytes: bytesOf(report.text), alone, resolve, reject });
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      atEndOfTurn(() => {
        this.#isScheduled = false;
        if (!this.fetchTakes()) this.flush();
      });
    });
  }

  /** Fetches jobs, and takes along what waits to be reported. @param worker makes the request */
  async fetch(worker: Puller, options: FetchOptions): Promise<{ jobs: JobEnvelope[]; reported: number }> {
    const taken = this.#take();
    if (taken.length === 0) return { jobs: await worker.fetch(options), reported: 0 };
    try {
      const { jobs, outcomes } = await worker.exchange(sent(taken), options);
      if (outcomes) settle(taken, outcomes);
      else void this.#sendOneByOne(taken);
      return { jobs, reported: taken.length };
    } catch (error) {
      void this.#send(taken);
      throw error;
    }
  }

  flush(): void {
    while (this.#waiting.length > 0 && this.#underWay < PARALLEL) {
      if (!this.#isWorthIt) {
        this.#timer ??= setTimeout(() => {
          this.#timer = null;
          this.flush();
        }, GATHER_MS);
        return;
      }
      void this.#send(this.#take());
    }
  }

  get #isWorthIt(): boolean {
    const isEnough = this.#underWay === 0 || this.#waiting.length >= ENOUGH;
    return isEnough || performance.now() - this.#sentAt >= GATHER_MS;
  }

  #take(): Waiting[] {
    let count = 0;
    let bytes = 0;
    for (const { bytes: own } of this.#waiting) {
      bytes += own;
      if (count > 0 && (count >= MAX_REPORTS || bytes > MAX_BODY_BYTES)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  /** Sends these until each has its outcome. Never rejects. */
  async #send(taken: Waiting[]): Promise<void> {
    this.#underWay++;
    this.#sentAt = performance.now();
    try {
      settle(taken, await this.send(sent(taken)));
    } catch (error) {
      if (isUnknownPath(error)) await this.#sendOneByOne(taken);
      else for (const { reject } of taken) reject(error);
    }
    this.#underWay--;
    if (!this.#isScheduled && this.#waiting.length > 0 && !this.fetchTakes()) this.flush();
  }

  async #sendOneByOne(taken: Waiting[]): Promise<void> {
    this.#oneByOne = true;
    await Promise.all(taken.map(({ alone, resolve, reject }) => alone().then(() => resolve(), reject)));
  }
}

const sent = (taken: readonly Waiting[]) => taken.map(({ report }) => report);

function settle(taken: readonly Waiting[], outcomes: readonly ReportOutcome[]): void {
  for (const [index, { resolve, reject }] of taken.entries()) {
    const outcome = outcomes[index];
    if (outcome?.status === 'failed') reject(outcome.error);
    else resolve(outcome);
  }
}

const isUnknownPath = (error: unknown): boolean =>
  error instanceof NotFoundError && error.details.resourceType === 'route';

/** After everything that happens in this turn; where there is no such moment, as soon as a timer fires. */
function atEndOfTurn(run: () => void): void {
  const { setImmediate } = globalThis as { setImmediate?: (run: () => void) => unknown };
  if (setImmediate) setImmediate(run);
  else setTimeout(run, 0);
}
