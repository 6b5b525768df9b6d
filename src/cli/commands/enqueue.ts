/** `tocsin enqueue` */
import type { Command } from 'commander';
import { WaitTimeoutError } from '../../producer/errors';
import type { EnqueueOptions } from '../../producer/job';
import { integer, json, list, remote, session } from '../command';
import type { ConnectionOptions } from '../connection';
import { CliError, EXIT, usageError } from '../failure';
import { type Terminal, textOf } from '../output';

interface Options extends ConnectionOptions {
  queue?: string;
  delay?: string;
  at?: string;
  priority?: number;
  id?: string;
  maxAttempts?: number;
  timeout?: number;
  tag?: string[];
  meta?: unknown;
  idempotencyKey?: string;
  wait?: boolean;
}

/** The command that makes a job. */
export function enqueueCommand(terminal: Terminal): Command {
  return remote('enqueue', 'enqueue a job')
    .argument('<type>', 'job type, like email.send')
    .argument('[args...]', 'arguments of the job: each JSON, or plain text')
    .option('--queue <name>', 'queue (default: default)')
    .option('--delay <duration>', 'delay before the first run: 30s, 5m, PT1H')
    .option('--at <time>', 'time of the first run: RFC 3339')
    .option('--priority <n>', 'priority from -100 to 100, higher first', integer(-100, 100))
    .option('--id <uuid>', 'id of the job: a UUIDv7')
    .option('--max-attempts <n>', 'maximum number of attempts', integer(0, 1_000_000))
    .option('--timeout <ms>', 'timeout of an attempt, in ms', integer(1, 86_400_000))
    .option('--tag <tag>', 'tag; may be given several times', list)
    .option('--meta <json>', 'metadata of the job: a JSON object', json)
    .option('--idempotency-key <key>', 'a key enqueues only one job in 24 hours')
    .option('--wait', 'wait until the job ends, and print its result')
    .action(async (type: string, args: string[], options: Options) => {
      const { tocsin, answer } = session(terminal, options);
      if (options.delay !== undefined && options.at !== undefined) throw usageError('Use --delay or --at, not both.');
      const job = await tocsin.enqueue(type, args.map(argument), enqueueOptions(options));
      if (!options.wait) {
        const noted = job.deduplicated ? ' (already exists)' : '';
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

/**
 * An argument of a job: JSON where it is JSON, else text, so that `Ada` needs no quotes.
 * @throws {CliError} for what begins like JSON and is none
 */
export function argument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (/^\s*["[{]/.test(text)) throw usageError(`${text} is not JSON.`, 'Quote it for your shell: \'{"to": "Ada"}\'.');
    return text;
  }
}

function enqueueOptions(options: Options): EnqueueOptions {
  const { queue, delay, at, priority, id, maxAttempts, timeout, tag, meta, idempotencyKey } = options;
  if (meta !== undefined && (typeof meta !== 'object' || meta === null || Array.isArray(meta))) {
    throw usageError('--meta must be a JSON object.');
  }
  const chosen = {
    queue,
    delay,
    delayUntil: at,
    priority,
    id,
    maxAttempts,
    timeoutMs: timeout,
    tags: tag,
    meta,
    idempotencyKey,
  };
  return Object.fromEntries(Object.entries(chosen).filter(([, value]) => value !== undefined)) as EnqueueOptions;
}
