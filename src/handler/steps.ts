/**
 * The durable steps, sleeps and signals of one run, by the rules of `step-rules`.
 *
 * A run that waits for sleeps and signals ends once its handler makes no further progress: no step and no other call of
 * `ctx` is under way, and for a short time nothing new has begun. A step that needs another call of the queue ends the
 * run immediately.
 *
 * A call that ends the run never returns to the handler, so no `catch` of the handler can take it for a failure and
 * continue. Code outside of the handler learns it from {@link Steps.guard}.
 */
import { isA } from '../job/thrown';
import type { RunRequest } from '../job/wire';
import { Inside } from './inside';
import { StepError } from './outcomes';
import { Pauses, turn } from './pauses';
import { nextTry, type Plan, type RunOfSteps, stepPolicy, tryStep } from './step-policy';
import {
  AT_ONCE,
  earlier,
  isLarge,
  type Pause,
  recordedResult,
  requireName,
  type StepRecord,
  triesOf,
} from './step-rules';
import { Streams } from './stream';
import { SuspendedError } from './suspension';
import { jsonCopy } from './text';
import type { HandlerContext } from './types';
import type { Notes, Voice } from './voice';
import { never, Waits, type WaitsHost } from './waits';

/** What a run waits for, instead of an end. */
export type Suspension = { kind: 'pause'; pause: Pause } | { kind: 'again' };

/** A step that is tried again, as it is recorded. */
type Later = StepRecord & { until: number; tries: number };

/** Names of a drift that are listed. */
const MOST_NAMES = 50;

/** The longest pause between two tries that a run stays open for, ms. */
const IN_PLACE_MS = 1_000;

export class Steps implements WaitsHost {
  readonly waits = new Waits(this);
  #streams: Streams | undefined;
  /** Made when they are needed: most runs have no steps. */
  #used: Set<string> | undefined;
  /** By name. */
  #underWay: Map<string, Promise<unknown>> | undefined;
  #suspension: Suspension | undefined;
  #runs: RunRequest[] = [];
  /** Steps during which a pause came to its end: the handler may have stopped waiting for them. */
  #overtaken: Set<string> | undefined;
  /** Steps that wait for their next try, and until when. */
  #retrying: Map<string, number> | undefined;
  #inside: Inside | undefined;
  /** Other calls of `ctx` that are under way. */
  #calls = 0;
  /** Counts what the handler does. */
  #moves = 0;
  #isWatching = false;
  #madePauses: Pauses | undefined;
  /** The first failure of a step that the handler may not hear of. */
  #failure: { thrown: unknown } | undefined;
  #isOver = false;
  /** Ends the handler's run. */
  #tell: (() => void) | undefined;

  /** @param recorded what is recorded of the job @param now the queue's time, epoch ms */
  constructor(
    private readonly recorded: Record<string, StepRecord>,
    readonly voice: Voice,
    readonly notes: Notes,
    readonly now: () => number,
    private readonly run: RunOfSteps,
  ) {}

  /** Why the run continues later, if a sleep, a signal or a step has ended it. */
  get suspension(): Suspension | undefined {
    return this.#suspension;
  }

  /** The jobs that the handler waits for after a suspension. */
  get runs(): readonly RunRequest[] {
    return this.#runs;
  }

  /** Are steps under way that must come to their end? */
  get busy(): boolean {
    return this.#needed.length > 0;
  }

  get pauses(): Pauses {
    this.#madePauses ??= new Pauses(
      () => this.#look(),
      () => this.#noteSettled(),
    );
    return this.#madePauses;
  }

  get #needed(): Promise<unknown>[] {
    return [...(this.#underWay ?? [])].filter(([name]) => !this.#overtaken?.has(name)).map(([, work]) => work);
  }

  /** What kept the run open until its time was up, as a sentence; empty: no step did. */
  get stuck(): string {
    const names = [...(this.#underWay?.keys() ?? [])].map((name) => JSON.stringify(name)).join(', ');
    if (names === '') return '';
    const isPaused = (this.#madePauses?.awaited().length ?? 0) > 0;
    const hint = isPaused ? ', nor had a sleep or the wait for a signal: inside of a step these never end' : '';
    return ` Of its steps, ${names} had not ended${hint}.`;
  }

  /** Ends the run if the handler waits for pauses, even if a step continues that it may have given up. */
  suspend(): Suspension | undefined {
    const awaited = this.busy ? [] : (this.#madePauses?.awaited() ?? []);
    if (awaited.length > 0) this.#suspend({ kind: 'pause', pause: awaited.reduce(earlier) });
    return this.#suspension;
  }

  /** What the run says of names on record that it did not reach; a signal may come before its handler waits for it. */
  get drift(): { message: string; names: string[] } | undefined {
    const steps = Object.keys(this.recorded).filter((name) => !('signal' in (this.recorded[name] as StepRecord)));
    const names = steps.filter((name) => !this.#used?.has(name));
    if (names.length === 0) return undefined;
    const shown = names.slice(0, MOST_NAMES);
    const listed = shown.map((name) => JSON.stringify(name)).join(', ');
    const isNoneReached = names.length === steps.length && names.length > 1;
    const question = isNoneReached ? ' Are names made from the clock or from random numbers?' : '';
    const message = `The run did not reach ${names.length} of the steps on record: ${listed}.${question}`;
    return { message, names: shown };
  }

  /** The first failure of a step that the handler may not have seen. */
  get failure(): { thrown: unknown } | undefined {
    return this.#failure;
  }

  /** The handler's own end, or the end of the run that continues later. @throws {SuspendedError} */
  guard(handler: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#tell = () => reject(new SuspendedError('The run ends here and continues later.'));
      // What it still waits for has lost a race, or was not awaited.
      const ended =
        <T>(end: (how: T) => void) =>
        (how: T): void => {
          this.#madePauses?.clear();
          end(how);
        };
      handler.then(ended(resolve), ended(reject));
      if (this.#suspension) this.#tell();
    });
  }

  step: HandlerContext['step'] = async (name, run, options) => {
    const begun = this.begin('step', name);
    if (typeof run !== 'function') throw new TypeError(`ctx.step: ${JSON.stringify(name)} needs a function`);
    const plan: Plan = { name, run, policy: stepPolicy(name, options) };
    const record = isLarge(begun) ? await this.whole(name, begun) : begun;
    if (isLarge(begun) && (this.#suspension || this.#isOver)) return await never();
    const known = recordedResult(name, record, plan.policy.retry !== undefined);
    // Recorded results were written by the same code.
    if (known) {
      void Promise.resolve().then(() => this.#madePauses?.overtake());
      return known.result as never;
    }
    let { tries, until } = triesOf(record);
    if (record && until > this.now()) this.note(name, record);
    for (;;) {
      if (until > this.now()) await this.#untilTry(name, until);
      if (this.#suspension || this.#isOver) return await never();
      if (this.voice.durable === 'never') return await this.needLine();
      const end = await this.#track(name, this.#perform(plan, tries, record));
      // The next run finds it done.
      if ('result' in end && this.voice.durable === 'with the answer') {
        return await this.#suspend({ kind: 'pause', pause: { until: AT_ONCE } });
      }
      if ('result' in end) return end.result as never;
      ({ tries, until } = end);
    }
  };

  get streams(): Streams {
    this.#streams ??= new Streams(this.voice, () => this.#inside?.here);
    return this.#streams;
  }

  /** What was written to streams is confirmed. */
  async closeStreams(): Promise<void> {
    await this.#streams?.close();
    this.#streams?.end();
  }

  /** A record with its result, if that is large and this call can ask for it. */
  async whole<Known extends StepRecord | undefined>(name: string, record: Known): Promise<Known> {
    if (!isLarge(record)) return record;
    if (this.voice.durable === 'never') return await this.needLine();
    return this.voice.recall ? ((await this.during(this.voice.recall(name))) as Known) : record;
  }

  /** A step waits for its next try as a handler does for a sleep. */
  async #untilTry(name: string, at: number): Promise<void> {
    this.#retrying ??= new Map();
    this.#retrying.set(name, at);
    await this.pauses.wait(() => ({ at, leftMs: at - this.now(), end: async () => undefined }));
    this.#retrying.delete(name);
    this.#overtaken?.delete(name);
  }

  async #track<T>(name: string, work: Promise<T>): Promise<T> {
    this.#underWay ??= new Map();
    this.#underWay.set(name, work);
    this.#look();
    try {
      return await work;
    } catch (thrown) {
      // On record it is thrown again, where the handler hears of it.
      const isHeard = this.#suspension ? isA(thrown, StepError) : !this.#isOver;
      if (!isHeard && !this.#overtaken?.has(name)) this.#failure ??= { thrown };
      throw thrown;
    } finally {
      this.#underWay.delete(name);
      this.#madePauses?.overtake();
      this.#move();
    }
  }

  /** Keeps the run open while another call of `ctx` is under way. */
  async during<T>(call: Promise<T>): Promise<T> {
    this.#calls++;
    this.#move();
    try {
      return await call;
    } finally {
      this.#calls--;
      this.#move();
    }
  }

  /** Waits for what is under way: a step that has done its work must be recorded, or it would be done again. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#needed);
    // The steps themselves note their failures a moment later.
    await Promise.resolve();
  }

  /** Ends the run because this call carries no more than its answer: another one stays open. */
  async needLine(): Promise<never> {
    return await this.#suspend({ kind: 'again' });
  }

  /** Lets the job continue whose handler has ended, but not the steps that it began. */
  awaitTries(): void {
    for (const [name, until] of this.#retrying ?? []) {
      if (!this.#overtaken?.has(name)) void this.#suspend({ kind: 'pause', pause: { until } });
    }
  }

  /** Begins nothing more. */
  close(): void {
    this.#isOver = true;
    this.#madePauses?.clear();
  }

  /** Takes a name for this run. @returns what is recorded under it */
  begin(verb: string, name: unknown): StepRecord | undefined {
    requireName(verb, name);
    if (verb !== 'step' && this.#inside?.isHere) {
      throw new TypeError(
        `ctx.${verb}: ${JSON.stringify(name)} is inside of a ctx.step, which cannot sleep or wait; call it between steps`,
      );
    }
    if (this.#isOver && !this.#suspension)
      throw new Error(`ctx.${verb}: the run has ended; ${JSON.stringify(name)} was not started`);
    this.#used ??= new Set();
    if (this.#used.has(name)) {
      throw new TypeError(`ctx.${verb}: the name ${JSON.stringify(name)} is used twice in one run; each needs its own`);
    }
    this.#used.add(name);
    this.#move();
    return Object.hasOwn(this.recorded, name) ? this.recorded[name] : undefined;
  }

  /** Tries a step, also again after short pauses. @param tries before. @returns when it must be tried again, if so */
  async #perform(
    { name, run, policy }: Plan,
    tries: number,
    record: StepRecord | undefined,
  ): Promise<{ result: unknown } | Later> {
    const undo = this.run.canUndo(name) ? ({ undo: true } as const) : {};
    // What is cut off after its effect must be known.
    if (undo.undo && !record?.undo && this.voice.durable === 'now') {
      const known = recordedResult(name, await this.voice.record(name, { begun: true, ...undo }), true);
      if (known) return known;
    }
    this.#inside ??= new Inside();
    const { retry, timeoutMs } = policy;
    const isCut = timeoutMs !== undefined && timeoutMs >= this.run.limitMs;
    if (isCut) this.run.warn(`The timeout of the step ${JSON.stringify(name)} is cut to that of the job.`);
    for (;;) {
      tries++;
      let value: unknown;
      try {
        value = await this.#inside.run(name, () => tryStep(run, this.run.aborter, isCut ? undefined : timeoutMs));
      } catch (thrown) {
        // A try that the end of the run has cut off counts for nothing.
        if (!retry || this.run.isAborted()) throw thrown;
        const now = this.now();
        const next = nextTry({ retry, thrown, tries, jobId: this.run.jobId }, now);
        if (!next) throw thrown;
        if ('error' in next) {
          const failure = { ...next, ...undo };
          return this.#recorded(name, await this.voice.record(name, failure), failure);
        }
        const { delayMs, failed } = next;
        this.run.warn(`Try ${tries} of the step ${JSON.stringify(name)} failed: ${failed.type}: ${failed.message}`);
        if (delayMs > IN_PLACE_MS || this.#suspension || this.#isOver) {
          return this.#later(name, { until: now + delayMs, tries, failed, ...undo });
        }
        await turn(delayMs);
        if (this.run.isAborted()) throw thrown;
        continue;
      }
      await this.#streams?.close(name);
      const result = jsonCopy(value, `ctx.step: the result of ${JSON.stringify(name)}`) ?? null;
      return this.#recorded(name, await this.voice.record(name, { result, ...undo }), { result });
    }
  }

  /** The first result wins: that of a run that was given up may have come before. @throws {StepError} */
  #recorded(name: string, earlier: StepRecord | undefined, own: StepRecord): { result: unknown } {
    return (recordedResult(name, earlier, true) ?? recordedResult(name, own)) as { result: unknown };
  }

  /** Notes when a step is tried again. A run that has ended otherwise continues then at the latest. */
  #later(name: string, later: Later): Later {
    this.notes.step(name, later);
    if (this.#suspension) void this.#suspend({ kind: 'pause', pause: { until: later.until } });
    return later;
  }

  /** A pause counts from when it was first reached. */
  note(name: string, record: StepRecord): void {
    if (this.#suspension?.kind !== 'again') this.notes.step(name, record);
  }

  #noteSettled(): void {
    for (const name of [...(this.#underWay?.keys() ?? []), ...(this.#retrying?.keys() ?? [])]) {
      this.#overtaken ??= new Set();
      this.#overtaken.add(name);
    }
    this.#moves++;
  }

  #move(): void {
    this.#moves++;
    this.#look();
  }

  /** Ends the run if its handler waits for pauses, and for nothing else. */
  #look(): void {
    if (this.#isWatching) return;
    if (this.#underWay?.size) this.#madePauses?.keepTime();
    if (!this.#waits) return;
    this.#isWatching = true;
    const moves = this.#moves;
    // What the handler awaits outside of `ctx`, such as a fetch, cannot be seen: it may come to its end in this time.
    void turn(this.#madePauses?.graceMs).then(() => {
      this.#isWatching = false;
      if (moves !== this.#moves || !this.#waits) return this.#look();
      this.suspend();
    });
  }

  get #waits(): boolean {
    const pauses = this.#madePauses;
    if (!pauses || this.#suspension || this.#isOver) return false;
    const isBusy = this.#underWay?.size || this.#calls > 0 || pauses.isSettling;
    return !isBusy && pauses.awaited().length > 0;
  }

  #suspend(next: Suspension): Promise<never> {
    if (next.kind === 'pause' && !this.#isOver) {
      const { runs, beginsOthers } = this.#madePauses?.runs() ?? { runs: [], beginsOthers: false };
      this.#runs = runs.map((asked) => (asked.jobs && this.run.canUndo(asked.name) ? { ...asked, undo: true } : asked));
      // They begin now, and the next run waits without them.
      if (beginsOthers) next.pause.until = AT_ONCE;
    }
    const one = this.#suspension;
    if (one?.kind === 'pause' && next.kind === 'pause') {
      this.#suspension = { kind: 'pause', pause: earlier(one.pause, next.pause) };
    } else this.#suspension = one ?? next;
    this.#tell?.();
    return never();
  }
}
