/** Job options as flags, derived from the table of job options; some are named or read differently. */
import type { Command } from 'commander';
import { isObject } from '../../job/envelope/fields';
import { wireName } from '../../producer/names';
import { CLIENT_OPTIONS, type ClientOption } from '../../producer/options';
import { type Flag, integer, json, list, optionOf } from '../command';
import { usageError } from '../failure';

function object(flag: string) {
  return (text: string): unknown => {
    const value = json(text);
    if (isObject(value)) return value;
    throw usageError(`${flag} must be a JSON object.`);
  };
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const MAX_LEASE_MS = 36_500 * 86_400_000;

const NAMED: { readonly [Name in ClientOption]?: Flag } = {
  queue: ['--queue <name>', 'queue (default: default)'],
  priority: ['--priority <n>', 'priority from -100 to 100, higher first', integer(-100, 100)],
  pending: ['--pending', 'wait until the job is activated'],
  delayUntil: ['--at <time>', 'time of the first run: RFC 3339'],
  expiresAt: ['--expires-at <time>', 'the job must not start at or after this time: RFC 3339'],
  timeoutMs: ['--timeout <ms>', 'timeout of an attempt, in ms', integer(1, 86_400_000)],
  visibilityTimeoutMs: ['--visibility-timeout <ms>', 'length of a lease, in ms', integer(1, MAX_LEASE_MS)],
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

export const JOB_FLAGS = Object.fromEntries(CLIENT_OPTIONS.map((name) => [name, flagOf(name)])) as Record<
  ClientOption,
  Flag
>;

export function addJobFlags(command: Pick<Command, 'addOption'>): void {
  for (const flag of Object.values(JOB_FLAGS)) command.addOption(optionOf(flag));
}
