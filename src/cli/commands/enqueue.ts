import { WaitTimeoutError } from '../../producer/errors';
import type { EnqueueOptions } from '../../producer/job';
import { action } from '../command';
import { CliError, EXIT, usageError } from '../failure';
import { textOf } from '../output';
import { jobLine } from '../resource';
import { JOB_FLAGS } from './job-flags';

const FLAGS = {
  delay: ['--delay <duration>', 'delay before the first run: 30s, 5m, PT1H'],
  ...JOB_FLAGS,
  id: ['--id <uuid>', 'id of the job: a UUIDv7'],
  idempotencyKey: ['--idempotency-key <key>', 'repeated requests with this key return the same job for 24 hours'],
  wait: ['--wait', 'wait until the job ends, and print its result'],
} as const;

export const enqueue = action(
  'enqueue',
  'enqueue a job',
  {
    takes: [
      ['<type>', 'job type, like email.send'],
      ['[args...]', 'arguments of the job: each JSON, or plain text'],
    ],
    flags: FLAGS,
  },
  async ({ tocsin, members: { wait, ...options } }, type, args) => {
    if (options.delay !== undefined && options.delayUntil !== undefined) {
      throw usageError('Use --delay or --at, not both.');
    }
    // The type has the combinations that are allowed: the client checks them.
    const job = await tocsin.enqueue(type, args.map(argument), options as object as EnqueueOptions);
    if (!wait) {
      const note = job.deduplicated ? ' (already exists)' : job.accumulated ? ' (added to it)' : '';
      return { value: { job }, text: `${jobLine(job)}${note}` };
    }
    const outcome = await tocsin.jobs.wait(job.id).catch((error: unknown) => {
      if (!(error instanceof WaitTimeoutError)) throw error;
      throw new CliError(error.message, `tocsin why ${job.id}`, error.code);
    });
    const { state, result, error } = outcome;
    const text = `${job.id}  ${state}  ${textOf(result ?? '')}`.trimEnd();
    if (state === 'completed') return { value: { job, outcome }, text };
    const why = `The job was ${state}${error ? `: ${error.message}` : ''}`;
    const failure = new CliError(why, `tocsin why ${job.id}`, state, EXIT.failure);
    return { value: { job, outcome }, text, failure };
  },
);

/** An argument of a job: JSON, else text, so that `Ada` needs no quotes. @throws {CliError} for broken JSON */
export function argument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (/^\s*["[{]/.test(text)) throw usageError(`${text} is not JSON.`, 'Quote it for your shell: \'{"to": "Ada"}\'.');
    return text;
  }
}
