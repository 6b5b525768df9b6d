/** `tocsin enqueue` */
import type { Command } from 'commander';
import { WaitTimeoutError } from '../../producer/errors';
import type { EnqueueOptions } from '../../producer/job';
import { remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { CliError, EXIT, usageError } from '../failure';
import { type Terminal, textOf } from '../output';
import { addJobFlags, jobOptionsIn } from './job-flags';

interface Options extends ConnectionOptions {
  delay?: string;
  at?: string;
  id?: string;
  idempotencyKey?: string;
  wait?: boolean;
}

export function enqueueCommand(terminal: Terminal): Command {
  const command = remote('enqueue', 'enqueue a job')
    .argument('<type>', 'job type, like email.send')
    .argument('[args...]', 'arguments of the job: each JSON, or plain text')
    .option('--delay <duration>', 'delay before the first run: 30s, 5m, PT1H');
  return addJobFlags(command)
    .option('--id <uuid>', 'id of the job: a UUIDv7')
    .option('--idempotency-key <key>', 'repeated requests with this key return the same job for 24 hours')
    .option('--wait', 'wait until the job ends, and print its result')
    .action(async (type: string, args: string[], options: Options) => {
      const { tocsin, answer } = session(terminal, options);
      if (options.delay !== undefined && options.at !== undefined) throw usageError('Use --delay or --at, not both.');
      const job = await tocsin.enqueue(type, args.map(argument), enqueueOptions(options));
      if (!options.wait) {
        const noted = job.deduplicated ? ' (already exists)' : job.accumulated ? ' (added to it)' : '';
        return answer({ job }, () => `${job.id}  ${job.type}  ${job.queue}  ${job.state}${noted}`);
      }
      const outcome = await tocsin.jobs.wait(job.id).catch((error: unknown) => {
        if (!(error instanceof WaitTimeoutError)) throw error;
        throw new CliError(error.message, `tocsin why ${job.id}`, error.code);
      });
      answer({ job, outcome }, () => `${job.id}  ${outcome.state}  ${textOf(outcome.result ?? '')}`.trimEnd());
      if (outcome.state !== 'completed') {
        const why = outcome.error ? `: ${outcome.error.message}` : '';
        throw new CliError(`The job was ${outcome.state}${why}`, `tocsin why ${job.id}`, outcome.state, EXIT.failure);
      }
    });
}

/** An argument of a job: JSON, else text, so that `Ada` needs no quotes. @throws {CliError} for broken JSON */
export function argument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (/^\s*["[{]/.test(text)) throw usageError(`${text} is not JSON.`, 'Quote it for your shell: \'{"to": "Ada"}\'.');
    return text;
  }
}

function enqueueOptions(options: Options): EnqueueOptions {
  const { delay, id, idempotencyKey } = options;
  const own = Object.entries({ delay, id, idempotencyKey }).filter(([, value]) => value !== undefined);
  return { ...jobOptionsIn(options), ...Object.fromEntries(own) };
}
