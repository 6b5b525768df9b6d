/** Runs a chunked handler in a test, as a queue would. */
import type { HandlerDelivery } from '../handler/protocol';
import { runAll } from '../handler/run-all';
import { runnable } from '../handler/runnable';
import { idOf, testJob } from './job';
import { outcomeOf } from './run-handler';
import type { ArgsOf, EnvOf, HandlerRun, ResultOf, RunOptions, TypesOf } from './types';

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
  const outlives: Promise<unknown>[] = [];
  const answers = await Promise.all(
    runAll(deliveries, registry, {
      env: options.env ?? {},
      executionCtx: { waitUntil: (promise) => void outlives.push(promise) },
      call: options.signal && { signal: options.signal },
      sink: () => undefined,
    }),
  );
  await Promise.allSettled(outlives);
  const runs = answers.map((answer, at) => outcomeOf(answer, undefined, (deliveries[at] as HandlerDelivery).job, now));
  return runs as HandlerRun<ResultOf<H, Type>>[];
}
