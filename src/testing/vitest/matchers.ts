/** What a test expects of a queue: `await expect(queue).toHaveEnqueued('email.send', [{ to: 'ada@example.com' }])`. */
import { expect, type MatcherState } from 'vitest';
import type { JobEnvelope } from '../../producer/envelope';
import { TestQueue } from './queue';

/** Members that a job must have, as `queue.job(id)` shows it: `{ queue: 'mail', priority: 5 }`. */
export type ExpectedJob = { [Member in keyof JobEnvelope]?: unknown };

interface QueueMatchers {
  /**
   * There is a job of this type, with these arguments and members if they are given; asymmetric matchers such as
   * `expect.objectContaining(…)` may stand for any part. Jobs are seen in any state, for as long as the queue keeps
   * them.
   */
  toHaveEnqueued(type: string, args?: unknown, job?: ExpectedJob): Promise<void>;
  /** There is such a job, and it has completed. Wait for it by `queue.idle()` or `queue.advance(…)`. */
  toHaveCompleted(type: string, args?: unknown, job?: ExpectedJob): Promise<void>;
}

declare module 'vitest' {
  // biome-ignore lint/suspicious/noExplicitAny: as it is declared there
  interface Matchers<T = any> extends QueueMatchers {}
}

const MAX_LISTED = 20;
/** Levels of a value that a message shows. */
const MAX_DEPTH = 5;

interface Utils {
  equals(a: unknown, b: unknown, testers?: unknown[]): boolean;
  utils: {
    subsetEquality: unknown;
    iterableEquality: unknown;
    stringify(value: unknown, depth: number, options: { min: true }): string;
  };
}

async function match(this: Utils, verb: string, given: unknown, type: string, args?: unknown, job?: ExpectedJob) {
  if (!(given instanceof TestQueue)) throw new TypeError('this expects what testQueue returned');
  const { equals, utils } = this;
  const jobs: JobEnvelope[] = await given.jobs();
  const fits = (one: JobEnvelope): boolean =>
    one.type === type &&
    (args === undefined || equals(one.args, args, [utils.iterableEquality])) &&
    (job === undefined || equals(one, job, [utils.iterableEquality, utils.subsetEquality]));
  const wanted = [
    JSON.stringify(type),
    ...(args === undefined ? [] : [short(args, utils)]),
    ...(job === undefined ? [] : [short(job, utils)]),
  ].join(' ');
  return {
    pass: jobs.some(fits),
    message: () =>
      `expected ${given.name ? `queue ${given.name}` : 'the queue'} ${verb} ${wanted}\n${listed(jobs, utils)}`,
  };
}

/** On one line; asymmetric matchers show what they are. */
const short = (value: unknown, utils: Utils['utils']): string => utils.stringify(value, MAX_DEPTH, { min: true });

function listed(jobs: readonly JobEnvelope[], utils: Utils['utils']): string {
  if (jobs.length === 0) return '\nNothing was enqueued.';
  const lines = jobs.slice(-MAX_LISTED).map((job) => {
    const where = job.queue === 'default' ? '' : ` in ${job.queue}`;
    const why = job.error ? `: ${job.error.message}` : '';
    return `  ${job.type} ${short(job.args, utils)}${where}, ${job.state}${why}`;
  });
  const before = jobs.length - lines.length;
  return ['', 'Enqueued were:', ...(before > 0 ? [`  (${before} earlier ones)`] : []), ...lines].join('\n');
}

/** The matchers, for an `expect` other than Vitest's own: `expect.extend(queueMatchers)`. */
export const queueMatchers = {
  async toHaveEnqueued(this: MatcherState, queue: unknown, type: string, args?: unknown, job?: ExpectedJob) {
    const utils = this as unknown as Utils;
    return await match.call(utils, this.isNot ? 'not to have' : 'to have', queue, type, args, job);
  },
  async toHaveCompleted(this: MatcherState, queue: unknown, type: string, args?: unknown, job?: ExpectedJob) {
    const utils = this as unknown as Utils;
    const verb = this.isNot ? 'not to have completed' : 'to have completed';
    return await match.call(utils, verb, queue, type, args, { ...job, state: 'completed' });
  },
};

expect.extend(queueMatchers);
