/** Runs handlers in a test by the code that runs deliveries, with a recorder in place of the queue. */
import { endsJob } from '../handler/failure';
import type { DeliveryOutcome, HandlerDelivery } from '../handler/protocol';
import { runDelivery } from '../handler/run';
import { runnable } from '../handler/runnable';
import { momentOf } from '../handler/step-rules';
import { own } from '../job/own';
import { named } from '../producer/names';
import { testJob } from './job';
import { Recorder } from './recorder';
import { pendingRun } from './runs';
import type { ArgsOf, EnvOf, HandlerRun, ResultOf, RunOptions, TypesOf } from './types';

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
  const outlives: Promise<unknown>[] = [];
  let recorder: Recorder | undefined;
  const answer = await runDelivery(delivery, registry, {
    env: options.env ?? {},
    executionCtx: { waitUntil: (promise) => void outlives.push(promise) },
    call: options.signal && { signal: options.signal },
    sink: () => undefined,
    queueNow: () => now,
    voice: (_, notes) => {
      recorder = new Recorder(job, notes, options.runs ?? {}, now);
      return recorder;
    },
  });
  await Promise.allSettled(outlives);
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
      return { ...run, log, progress, enqueued, runs, sleptMs: next.now - start };
    }
    const { steps, checkpoint } = run;
    next = { ...next, now: Math.max(next.now, run.wakes.at), steps, checkpoint };
  }
  throw new Error(`runToEnd: a job of type ${JSON.stringify(type)} did not end within ${MAX_RUNS} runs`);
}
