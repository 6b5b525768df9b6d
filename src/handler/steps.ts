/**
 * The durable steps, sleeps and signals of one run, by the rules of `step-rules`.
 *
 * A call that ends the run never returns to the handler, so no `catch` of the handler can take it for a failure and
 * continue. Code outside of the handler learns it from {@link Steps.guard}.
 */
import { requireDuration } from './duration';
import { SignalTimeoutError } from './outcomes';
import {
  AT_ONCE,
  earlier,
  type Pause,
  recordedResult,
  requireName,
  type StepRecord,
  signalOf,
  sleepUntil,
} from './step-rules';
import { SuspendedError } from './suspension';
import { jsonCopy } from './text';
import type { HandlerContext } from './types';
import type { Notes, Voice } from './voice';

const SEVEN_DAYS = '7d';

/** What a run waits for, instead of an end. */
export type Suspension = { kind: 'pause'; pause: Pause } | { kind: 'again' };

export class Steps {
  /** Made when they are needed: most runs have no steps. */
  #used: Set<string> | undefined;
  #underWay: Set<Promise<unknown>> | undefined;
  #suspension: Suspension | undefined;
  /** The first failure of a step that the handler may not hear of. */
  #failure: { thrown: unknown } | undefined;
  #isOver = false;
  /** Ends the handler's run. */
  #tell: (() => void) | undefined;

  /**
   * @param recorded what is recorded of the job
   * @param now the queue's time, epoch ms
   */
  constructor(
    private readonly recorded: Record<string, StepRecord>,
    private readonly voice: Voice,
    private readonly notes: Notes,
    private readonly now: () => number,
  ) {}

  /** Why the run continues later, if a sleep, a signal or a step has ended it. */
  get suspension(): Suspension | undefined {
    return this.#suspension;
  }

  /** Are steps under way? */
  get busy(): boolean {
    return this.#underWay !== undefined && this.#underWay.size > 0;
  }

  /** The first failure of a step that the handler may not have seen. */
  get failure(): { thrown: unknown } | undefined {
    return this.#failure;
  }

  /** The handler's own end, or the end of the run that continues later. @throws {SuspendedError} */
  guard(handler: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#tell = () => reject(new SuspendedError('The run ends here and continues later.'));
      handler.then(resolve, reject);
      if (this.#suspension) this.#tell();
    });
  }

  step: HandlerContext['step'] = async (name, run) => {
    const record = this.#begin('step', name);
    if (typeof run !== 'function') throw new TypeError(`ctx.step: ${JSON.stringify(name)} needs a function`);
    const known = recordedResult(name, record);
    // Recorded results were written by the same code.
    if (known) return known.result as never;
    if (this.#suspension) return await never();
    if (this.voice.durable === 'never') return await this.needLine();
    const work = this.#perform(name, run);
    this.#underWay ??= new Set();
    this.#underWay.add(work);
    try {
      await work;
    } catch (thrown) {
      if (this.#suspension || this.#isOver) this.#failure ??= { thrown };
      throw thrown;
    } finally {
      this.#underWay.delete(work);
    }
    // The next run finds it done.
    if (this.voice.durable === 'with the answer') {
      return await this.#suspend({ kind: 'pause', pause: { until: AT_ONCE } });
    }
    return (await work) as never;
  };

  sleep: HandlerContext['sleep'] = async (name, duration) => {
    const record = this.#begin('sleep', name);
    const left = sleepUntil(name, record, requireDuration(duration, 'ctx.sleep'), this.now());
    if (left) await this.#pause(name, left);
  };

  waitFor: HandlerContext['waitFor'] = async (name, { timeout = SEVEN_DAYS } = {}) => {
    const record = this.#begin('waitFor', name);
    const known = signalOf(name, record, requireDuration(timeout, 'ctx.waitFor'), this.now());
    if (known === 'timed out') {
      const earlier = await this.#recordAbsence(name, record);
      if (earlier && 'signal' in earlier) return earlier.signal.payload as never;
      throw new SignalTimeoutError(`The signal ${JSON.stringify(name)} did not arrive in time.`);
    }
    if ('until' in known) return await this.#pause(name, { ...known, signal: name });
    return known.payload as never;
  };

  /**
   * Waits for what is under way, once nothing more is begun: a step that has done its work must be recorded, or it
   * would be done again.
   */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#underWay ?? []);
    // The steps themselves note their failures a moment later.
    await Promise.resolve();
  }

  /** Ends the run because this call carries no more than its answer: another one stays open. */
  async needLine(): Promise<never> {
    return await this.#suspend({ kind: 'again' });
  }

  /** Begins nothing more. */
  close(): void {
    this.#isOver = true;
  }

  /** Takes a name for this run. @returns what is recorded under it */
  #begin(verb: string, name: unknown): StepRecord | undefined {
    requireName(verb, name);
    if (this.#isOver && !this.#suspension)
      throw new Error(`ctx.${verb}: the run has ended; ${JSON.stringify(name)} was not started`);
    this.#used ??= new Set();
    if (this.#used.has(name)) {
      throw new TypeError(`ctx.${verb}: the name ${JSON.stringify(name)} is used twice in one run; each needs its own`);
    }
    this.#used.add(name);
    return Object.hasOwn(this.recorded, name) ? this.recorded[name] : undefined;
  }

  async #perform(name: string, run: () => unknown): Promise<unknown> {
    const result = jsonCopy(await run(), `ctx.step: the result of ${JSON.stringify(name)}`) ?? null;
    // The first result wins: that of a run that was given up may have come before.
    const earlier = await this.voice.record(name, { result });
    return (recordedResult(name, earlier) ?? { result }).result;
  }

  /** From now on the signal is too late, also for a later run. @returns the signal that came at the last moment */
  async #recordAbsence(name: string, record: StepRecord | undefined): Promise<StepRecord | undefined> {
    const absence = { timed_out: true } as const;
    if (record !== undefined && 'timed_out' in record) return record;
    if (this.voice.durable === 'now') return await this.voice.record(name, absence);
    this.notes.step(name, absence);
    return undefined;
  }

  #pause(name: string, pause: Pause): Promise<never> {
    if (this.#suspension?.kind !== 'again') this.notes.step(name, { until: pause.until });
    return this.#suspend({ kind: 'pause', pause });
  }

  #suspend(next: Suspension): Promise<never> {
    const one = this.#suspension;
    if (one?.kind === 'pause' && next.kind === 'pause') {
      this.#suspension = { kind: 'pause', pause: earlier(one.pause, next.pause) };
    } else this.#suspension = one ?? next;
    this.#tell?.();
    return never();
  }
}

/** What the run does not come back from. */
function never(): Promise<never> {
  return new Promise(() => undefined);
}
