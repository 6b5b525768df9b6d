/** Runs handlers in a test by the code that runs deliveries, with a recorder in place of the queue. */
import { endsJob } from '../handler/failure';
import type { Host } from '../handler/host';
import { type DeliveryOutcome, type HandlerDelivery, type Progress, stepsOf } from '../handler/protocol';
import type { Registration } from '../handler/registry';
import { newId, runDelivery } from '../handler/run';
import { runAll } from '../handler/run-all';
import { runnable } from '../handler/runnable';
import { momentOf, type RunRecord, type StepRecord } from '../handler/step-rules';
import { jsonCopy } from '../handler/text';
import type { Job, UndoneJob } from '../handler/types';
import {
  answerVoice,
  type ChildJob,
  type Notes,
  type SignalUrlAsked,
  type StreamMessage,
  type Voice,
} from '../handler/voice';
import { own } from '../job/own';
import { UNDO_OF, UNDO_SUFFIX } from '../job/undo-names';
import type { RunRequest } from '../job/wire';
import type { JobEnvelope, RetryPolicy } from '../producer/envelope';
import { named } from '../producer/names';
import { idOf, type PlayedRuns, pendingRun, playedRun, withEnds } from './runs';
import type { ArgsOf, EnvOf, HandlerRun, ResultOf, RunOptions, TypesOf } from './types';

export { idOf };

const DEFAULT_ATTEMPTS = 3;

/** @throws {TypeError} when something of it is not JSON */
function testJob(
  type: string,
  args: readonly unknown[],
  handler: Registration,
  options: RunOptions & { now: number },
): Job {
  const { attempt = 1, meta = {}, checkpoint, timeoutMs, now, job = {} } = options;
  const at = new Date(now).toISOString();
  const policy = { ...(named(handler.policy) as RetryPolicy | undefined), ...job.retry };
  const made = {
    specversion: '1.0',
    id: idOf(0),
    type,
    queue: 'default',
    args,
    meta,
    priority: 0,
    state: 'active',
    attempt,
    maxAttempts: options.maxAttempts ?? handler.maxAttempts ?? policy.maxAttempts ?? DEFAULT_ATTEMPTS,
    retryEffective: policy,
    ...(timeoutMs !== undefined && { timeoutMs }),
    createdAt: at,
    enqueuedAt: at,
    startedAt: at,
    ...(checkpoint !== undefined && { checkpoint: { state: checkpoint, sequence: 1 } }),
    steps: recorded(options, now),
    ...job,
  };
  // As after a way over the wire: what is not JSON is not there.
  return jsonCopy(made, 'runHandler: the job') as Job;
}

function recorded({ steps = {}, signals = {}, runs = {} }: RunOptions, now: number): Record<string, StepRecord> {
  const come = Object.entries(signals).map(([name, payload]) => [name, { signal: { payload, at: now } }]);
  return { ...withEnds(steps, runs, now), ...Object.fromEntries(come) };
}

/** How a job that is undone ended, and what it was. */
export interface UndoOptions<Env = unknown> extends RunOptions<Env> {
  /** Default: a job without arguments that was discarded. */
  undone?: Partial<UndoneJob> | undefined;
}

/**
 * Runs the job that undoes the steps of another one, to its end: waits between tries are over at once.
 * @param type of the job that is undone
 * @param steps what it has recorded, in order: the `steps` of an outcome, or `{ charge: { result: 7 } }`. Those that
 * nothing in the table of undo fits are left out
 * @throws {TypeError} when the handler of the type has no `undo`, or something given is not JSON
 * @example
 * const run = await undoHandler(handlers, 'order.fulfil', { charge: { result: { id: 'ch_1' } } }, { env: { SHOP } });
 * expect(run.status).toBe('completed');
 */
export async function undoHandler<H, Type extends TypesOf<H>>(
  handlers: H,
  type: Type,
  steps: Readonly<Record<string, StepRecord>>,
  { undone, ...options }: UndoOptions<EnvOf<H>> = {},
): Promise<JobRun<{ undone: number }>> {
  const { canUndo } = runnable(handlers).registry.find(type) ?? {};
  if (!canUndo) throw new TypeError(`undoHandler: the handler of ${JSON.stringify(type)} has no undo`);
  const failure = { code: 'handler_error', type: 'Error', message: 'failed' };
  const of = { id: idOf(0), type, args: [], meta: {}, end: 'discarded', error: failure, ...undone };
  const entries = Object.entries(steps).filter(([name]) => canUndo(name));
  const toUndo = entries.reverse().map(([name, step]) => ({
    ...{ name, certain: 'result' in step && !step.run?.failed },
    ...('result' in step && { result: step.result }),
    ...(step.run && { job_ids: step.run.ids ?? [step.run.id ?? null] }),
  }));
  const args = [{ job: of, steps: toUndo }];
  const meta = { [UNDO_OF]: of.id, ...options.meta };
  const job = { id: idOf(1), ...options.job };
  const undo = `${type}${UNDO_SUFFIX}`;
  const run = await runToEnd<object, string>(handlers as object, undo, args, { ...(options as RunOptions), meta, job });
  return run as JobRun<{ undone: number }>;
}

/**
 * Runs the jobs of one call of a chunked handler. Beyond the `size` of the handler there are several calls.
 *
 * @param jobs the arguments of each job
 * @param options of every job
 * @returns the outcome of each job, in order
 * @throws {TypeError} when there is no chunked handler for the type, or something given is not JSON
 * @example
 * const [first, second] = await runBatch(handlers, 'rows.insert', [[{ id: 1 }], [{ id: 2 }]]);
 * expect(second).toMatchObject({ status: 'failed', error: { message: 'refused' } });
 */
export async function runBatch<H, Type extends TypesOf<H>>(
  handlers: H,
  type: Type,
  jobs: readonly ArgsOf<H, Type>[],
  options: RunOptions<EnvOf<H>> = {},
): Promise<HandlerRun<ResultOf<H, Type>>[]> {
  const { registry } = runnable(handlers);
  const handler = registry.find(type);
  if (!handler?.chunk) throw new TypeError(`runBatch: there is no chunked handler for ${JSON.stringify(type)}`);
  const { now = Date.now() } = options;
  const deliveries = jobs.map((args, at): HandlerDelivery => {
    const job = testJob(type, args, handler, { ...options, now, job: { id: idOf(at), ...options.job } });
    return { kind: 'job', deliveryId: `del_test_${at}`, workerId: 'test', job, attempt: job.attempt };
  });
  const answers = await hosted(options, (host) => Promise.all(runAll(deliveries, registry, host)));
  const runs = answers.map((answer, at) => outcomeOf(answer, undefined, (deliveries[at] as HandlerDelivery).job, now));
  return runs as HandlerRun<ResultOf<H, Type>>[];
}

/** Runs something in the place of a queue, and waits for what outlives it. */
async function hosted<T>({ env = {}, signal }: RunOptions<unknown>, run: (host: Host) => Promise<T>): Promise<T> {
  const outlives: Promise<unknown>[] = [];
  const executionCtx = { waitUntil: (promise: Promise<unknown>) => void outlives.push(promise) };
  const answer = await run({ env, executionCtx, call: signal && { signal }, sink: () => undefined });
  await Promise.allSettled(outlives);
  return answer;
}

class Recorder implements Voice {
  readonly durable = 'now';
  readonly reports: Progress[] = [];
  readonly steps: Record<string, StepRecord>;
  /** By name, as far as the last execution of the writer wrote. */
  readonly streams: Record<string, unknown[]> = Object.create(null);
  state: unknown;
  readonly #answer: Voice;

  /** @param now the queue's time, epoch ms */
  constructor(
    job: Job,
    notes: Notes,
    private readonly runs: PlayedRuns,
    private readonly now: number,
  ) {
    // Names are the handler's choice, such as `constructor`.
    this.steps = Object.assign(Object.create(null), stepsOf(job));
    this.state = job.checkpoint?.state;
    this.#answer = answerVoice('with the answer', notes, newId);
  }

  async progress(report: Progress): Promise<void> {
    this.reports.push(report);
  }

  async checkpoint(state: unknown): Promise<void> {
    this.state = state;
  }

  async record(name: string, record: StepRecord): Promise<StepRecord | undefined> {
    const before = own(this.steps, name);
    // As at the queue: a sleep or a wait gives way, anything else has won.
    if (before !== undefined && !('until' in before) && !('begun' in before)) return before;
    this.steps[name] = { ...record, ...(before?.run && { run: before.run }) };
    return undefined;
  }

  async stream({ name, first, chunks }: StreamMessage): Promise<void> {
    // Each execution of the writer begins with 0.
    this.streams[name] = [
      ...(own(this.streams, name) ?? []).slice(0, first),
      ...(jsonCopy(chunks, 'chunks') as unknown[]),
    ];
  }

  async signalUrl({ signal }: SignalUrlAsked): Promise<string> {
    return `https://tocsin.test/ojs/v1/signal/${encodeURIComponent(signal)}`;
  }

  async enqueue(jobs: readonly ChildJob[]): Promise<JobEnvelope[]> {
    return await this.#answer.enqueue(jobs);
  }

  play(asked: RunRequest): Promise<RunRecord> | undefined {
    const ended = playedRun(asked, this.runs, this.now);
    return ended?.then((record) => {
      this.steps[asked.name] = record;
      return record;
    });
  }
}

/**
 * Runs the handler of one job once, in any runtime and under any test runner: no queue, no network.
 *
 * The arguments, the result and all reports of the handler pass through JSON, as they do with a queue.
 * Middleware, hooks, the schema of the arguments and the time limit are those of the handlers. The clock of sleeps and
 * signals stands still during the run; timers are real.
 *
 * @param handlers what `defineHandlers` returned, an object of handlers by type, or one function
 * @throws {TypeError} when there is no handler for the type, or something given is not JSON
 * @example
 * const run = await runHandler(handlers, 'email.send', [{ to: 'ada@example.com' }], { env: { MAIL_URL }, attempt: 2 });
 * expect(run).toMatchObject({ status: 'completed', result: { accepted: 'ada@example.com' } });
 */
export async function runHandler<H, Type extends TypesOf<H>>(
  handlers: H,
  type: Type,
  args: ArgsOf<H, Type>,
  options: RunOptions<EnvOf<H>> = {},
): Promise<HandlerRun<ResultOf<H, Type>>> {
  const { registry } = runnable(handlers);
  const handler = registry.find(type);
  if (!handler) {
    const known = registry.typeNames()?.join(', ');
    throw new TypeError(`runHandler: there is no handler for ${JSON.stringify(type)}; there are ${known}`);
  }
  const { now = Date.now() } = options;
  const job = testJob(type, args, handler, { ...options, now });
  const { attempt } = job;
  const delivery: HandlerDelivery = { kind: 'job', deliveryId: 'del_test', workerId: 'test', job, attempt };
  let recorder: Recorder | undefined;
  const voice: Host['voice'] = (_, notes) => {
    recorder = new Recorder(job, notes, options.runs ?? {}, now);
    return recorder;
  };
  const answer = await hosted(options, (host) =>
    runDelivery(delivery, registry, { ...host, queueNow: () => now, voice }),
  );
  return outcomeOf(answer, recorder, job, now) as HandlerRun<ResultOf<H, Type>>;
}

/** @param recorder what the run reported before its end; undefined for a chunked handler */
export function outcomeOf(
  answer: DeliveryOutcome,
  recorder: Recorder | undefined,
  job: HandlerDelivery['job'],
  now: number,
): HandlerRun {
  if (answer.status === 'again') throw new Error('runHandler: the run asked for an open call but already has one');
  const failure = answer.status === 'failed' ? answer.error : undefined;
  const steps = { ...recorder?.steps, ...answer.steps };
  const runs = (answer.status === 'snoozed' && answer.runs) || [];
  for (const run of runs) if (run.jobs) steps[run.name] = pendingRun(run, now);
  return {
    status: answer.status,
    result: answer.status === 'completed' && answer.result !== undefined ? JSON.parse(answer.result) : undefined,
    error: named(failure) as HandlerRun['error'],
    isLast: failure ? endsJob(failure, job, job.attempt) : answer.status === 'completed',
    wakes: answer.status === 'snoozed' ? wakesOf(answer, steps, now) : undefined,
    log: answer.log ?? [],
    progress: recorder?.reports ?? [],
    checkpoint: recorder?.state,
    steps,
    streams: { ...recorder?.streams },
    enqueued: named(answer.enqueue ?? []) as HandlerRun['enqueued'],
    waitsFor: named(runs) as HandlerRun['waitsFor'],
  };
}

function wakesOf(
  { until, in: ms, signal, runs = [] }: DeliveryOutcome & { status: 'snoozed' },
  steps: HandlerRun['steps'],
  now: number,
): NonNullable<HandlerRun['wakes']> {
  const moments = runs.map(({ name }) => momentOf(own(steps, name)));
  const at = Math.min(...[until, ms === undefined ? undefined : now + ms, ...moments].filter((at) => at !== undefined));
  return { at, ...(signal !== undefined && { signal }) };
}

/** Most runs of one job. */
const MAX_RUNS = 1_000;

/** The outcome of a job's last run, with the reports of all its runs. */
export interface JobRun<Result = unknown> extends HandlerRun<Result> {
  /** Each run, in order. */
  runs: HandlerRun<Result>[];
  /** How long the job slept in all, ms. */
  sleptMs: number;
}

/**
 * Runs the handler of one job again and again until it completes or fails: a sleep or a snooze is over at once, and
 * what a run recorded is there in the next one. A signal that was not given in `signals` does not come in time, and
 * jobs without an end in `runs` do not end in time.
 *
 * A failed attempt is not tried again: give `attempt: 2` and the `steps` of the first to another call.
 *
 * @throws {TypeError} as {@link runHandler}
 * @throws {Error} when the job has no end within 1000 runs
 * @example
 * const job = await runToEnd(handlers, 'order.ship', ['A17'], { signals: { approved: { by: 'Ada' } } });
 * expect(job.sleptMs).toBe(3 * 86_400_000);
 */
export async function runToEnd<H, Type extends TypesOf<H>>(
  handlers: H,
  type: Type,
  args: ArgsOf<H, Type>,
  options: RunOptions<EnvOf<H>> = {},
): Promise<JobRun<ResultOf<H, Type>>> {
  const start = options.now ?? Date.now();
  const runs: HandlerRun<ResultOf<H, Type>>[] = [];
  let next = { ...options, now: start };
  while (runs.length < MAX_RUNS) {
    const run = await runHandler(handlers, type, args, next);
    runs.push(run);
    if (!run.wakes) {
      const log = runs.flatMap((each) => each.log);
      const progress = runs.flatMap((each) => each.progress);
      const enqueued = runs.flatMap((each) => each.enqueued);
      const streams = Object.assign({}, ...runs.map((each) => each.streams));
      return { ...run, log, progress, streams, enqueued, runs, sleptMs: next.now - start };
    }
    const { steps, checkpoint } = run;
    next = { ...next, now: Math.max(next.now, run.wakes.at), steps, checkpoint };
  }
  throw new Error(`runToEnd: a job of type ${JSON.stringify(type)} did not end within ${MAX_RUNS} runs`);
}
