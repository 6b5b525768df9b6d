import type { Command } from 'commander';
import { MAX_DURATION_MS } from '../../job/duration';
import { isObject } from '../../job/envelope/fields';
import { jsonOrText } from '../../job/text';
import { WaitTimeoutError } from '../../producer/errors';
import type { EnqueueOptions } from '../../producer/job';
import { wireName } from '../../producer/names';
import { CLIENT_OPTIONS, type ClientOption } from '../../producer/options';
import { action, type Flag, integer, json, list, optionOf } from '../command';
import { CliError, EXIT, usageError } from '../failure';
import { textOf } from '../output';
import { jobLine } from '../resource';

function object(flag: string) {
  return (text: string): unknown => {
    const value = json(text);
    if (isObject(value)) return value;
    throw usageError(`${flag} must be a JSON object.`);
  };
}

const NAMED: { readonly [Name in ClientOption]?: Flag } = {
  queue: ['--queue <name>', 'queue (default: default)'],
  priority: ['--priority <n>', 'priority from -100 to 100, higher first', integer(-100, 100)],
  pending: ['--pending', 'wait until the job is activated'],
  delayUntil: ['--at <time>', 'time of the first run: RFC 3339'],
  expiresAt: ['--expires-at <time>', 'the job must not start at or after this time: RFC 3339'],
  timeoutMs: ['--timeout <ms>', 'timeout of an attempt, in ms', integer(1, 86_400_000)],
  visibilityTimeoutMs: ['--visibility-timeout <ms>', 'length of a lease, in ms', integer(1, MAX_DURATION_MS)],
  retry: ['--retry <json>', 'retry policy: a JSON object', object('--retry')],
  maxAttempts: ['--max-attempts <n>', 'maximum number of attempts', integer(0, 1_000_000)],
  meta: ['--meta <json>', 'metadata of the job: a JSON object', object('--meta')],
  tags: ['--tag <tag>', 'tag; may be given several times', list],
  retention: ['--retention <json>', 'how long to keep the job after it ends: a JSON object', object('--retention')],
  targetUrl: ['--target-url <url>', 'URL that the job is sent to'],
  unique: ['--unique <json>', 'unique policy: a JSON object', object('--unique')],
  rateLimit: ['--rate-limit <json>', 'rate and concurrency limit: a JSON object', object('--rate-limit')],
  schema: ['--schema <name>', 'name of the schema of its arguments'],
  // The program has a flag --version.
  version: ['--schema-version <version>', 'version of the schema', jsonOrText],
};

function flagOf(name: ClientOption): Flag {
  const wire = wireName(name);
  return NAMED[name] ?? [`--${wire.replaceAll('_', '-')} <value>`, `${wire}: JSON or text`, jsonOrText];
}

const JOB_FLAGS = Object.fromEntries(CLIENT_OPTIONS.map((name) => [name, flagOf(name)])) as Record<ClientOption, Flag>;

export function addJobFlags(command: Pick<Command, 'addOption'>): void {
  for (const flag of Object.values(JOB_FLAGS)) command.addOption(optionOf(flag));
}

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
