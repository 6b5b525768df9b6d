/** What a handler waits for outside of its steps: sleeps, signals, and jobs that it begins. */
import type { Duration } from '../producer/envelope';
import { DEFAULT_WAIT, msUntil, requireDuration } from './duration';
import { SignalTimeoutError } from './outcomes';
import type { Pauses } from './pauses';
import { type Run, runRecord } from './runs';
import { momentOf, type RunRecord, type StepRecord, signalOf, sleepUntil } from './step-rules';
import type { HandlerContext } from './types';
import type { Notes, Voice } from './voice';

/** What waits need of the steps of their run. */
export interface WaitsHost {
  readonly pauses: Pauses;
  readonly voice: Voice;
  readonly notes: Notes;
  /** The queue's time, epoch ms. */
  readonly now: () => number;
  /** Takes a name for this run. @returns what is recorded under it @throws {TypeError} */
  begin(verb: string, name: unknown): StepRecord | undefined;
  /** A record with its result, which may have to be asked for. */
  whole<Known extends StepRecord>(name: string, record: Known): Promise<Known>;
  /** Notes a pause, which counts from when it was first reached. */
  note(name: string, record: StepRecord): void;
}

/** The promises of its methods notice whether they are awaited: none is wrapped in another. */
export class Waits {
  constructor(private readonly host: WaitsHost) {}

  sleep: HandlerContext['sleep'] = (name, duration) =>
    this.#sleep('sleep', name, () => requireDuration(duration, 'ctx.sleep'));

  sleepUntil: HandlerContext['sleepUntil'] = (name, time) =>
    this.#sleep('sleepUntil', name, (now) => msUntil(time, 'ctx.sleepUntil', now));

  #sleep(verb: string, name: string, msFrom: (now: number) => number): Promise<void> {
    return this.host.pauses.wait(() => {
      const record = this.host.begin(verb, name);
      const now = this.host.now();
      const left = sleepUntil(name, record, msFrom(now), now);
      if (left) this.host.note(name, left);
      const at = left?.until ?? momentOf(record) ?? now;
      return { at, leftMs: left ? left.until - now : 0, end: async () => undefined };
    });
  }

  waitFor: HandlerContext['waitFor'] = <T>(name: string, { timeout }: { timeout?: Duration | undefined } = {}) =>
    this.host.pauses.wait(() => {
      const record = this.host.begin('waitFor', name);
      const now = this.host.now();
      const known = signalOf(name, record, requireDuration(timeout ?? DEFAULT_WAIT, 'ctx.waitFor'), now);
      const at = momentOf(record) ?? now;
      if (known !== 'timed out' && 'payload' in known) return { at, leftMs: 0, end: async () => known.payload as T };
      const end = () => this.#absent<T>(name, record);
      if (known === 'timed out') return { at, leftMs: 0, end };
      this.host.note(name, known);
      return { at: known.until, leftMs: known.until - now, signal: name, end };
    });

  /** Waits for jobs, which begin when this run has ended. */
  run<T>(run: Run<T>): Promise<T> {
    return this.host.pauses.wait(() => {
      const { verb, name, read } = run;
      const record = runRecord(run, this.host.begin(verb, name));
      const now = this.host.now();
      if (record === undefined) {
        const asked = run.request();
        const played = asked.jobs?.length === 0 ? EMPTY : this.host.voice.play?.(asked);
        if (played) return { at: now, leftMs: 0, end: async () => read(await played) };
        // Its time begins with the jobs.
        return { at: Number.POSITIVE_INFINITY, leftMs: Number.POSITIVE_INFINITY, run: asked, end: never };
      }
      const at = momentOf(record) ?? now;
      if (!('until' in record)) return { at, leftMs: 0, end: async () => read(await this.host.whole(name, record)) };
      const end = async () => {
        const ended = await this.#recordAbsence(name);
        return read((ended as RunRecord | undefined) ?? { timed_out: true, run: record.run });
      };
      return { at, leftMs: record.until - now, run: { name }, end };
    });
  }

  /** The signal has not come. @returns what came with it at the last moment. @throws {SignalTimeoutError} */
  async #absent<T>(name: string, record: StepRecord | undefined): Promise<T> {
    const known = record !== undefined && 'timed_out' in record ? record : await this.#recordAbsence(name);
    if (known && 'signal' in known) return known.signal.payload as T;
    throw new SignalTimeoutError(`The signal ${JSON.stringify(name)} did not arrive in time.`);
  }

  /** From now on it is too late, also for a later run. @returns what came at the last moment, which has won */
  async #recordAbsence(name: string): Promise<StepRecord | undefined> {
    const absence = { timed_out: true } as const;
    const { voice, notes } = this.host;
    if (voice.durable === 'now') return await voice.record(name, absence);
    notes.step(name, absence);
    return undefined;
  }
}

/** How no jobs at all end. */
const EMPTY = { result: [] } as unknown as RunRecord;

/** What a run does not come back from. */
export const never = (): Promise<never> => new Promise(() => undefined);
