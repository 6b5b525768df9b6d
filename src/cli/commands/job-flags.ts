/**
 * Job options as flags of a command, derived from the table of job options. This file only names and reads some of
 * them differently.
 */
import { type Command, Option } from 'commander';
import type { EnqueueOptions } from '../../producer/job';
import { wireName } from '../../producer/names';
import { CLIENT_OPTIONS, type ClientOption } from '../../producer/options';
import { integer, json, list } from '../command';
import { usageError } from '../failure';

interface Flag {
  flag: string;
  text: string;
  /** Default: it is text. */
  read?: (value: string, before?: never) => unknown;
}

const FLAGS: { readonly [Name in ClientOption]?: Flag } = {
  queue: { flag: '--queue <name>', text: 'queue (default: default)' },
  priority: { flag: '--priority <n>', text: 'priority from -100 to 100, higher first', read: integer(-100, 100) },
  pending: { flag: '--pending', text: 'wait until the job is activated' },
  delayUntil: { flag: '--at <time>', text: 'time of the first run: RFC 3339' },
  expiresAt: { flag: '--expires-at <time>', text: 'the job must not start at or after this time: RFC 3339' },
  timeoutMs: { flag: '--timeout <ms>', text: 'timeout of an attempt, in ms', read: integer(1, 86_400_000) },
  visibilityTimeoutMs: {
    flag: '--visibility-timeout <ms>',
    text: 'length of a lease, in ms',
    read: integer(1, 36_500 * 86_400_000),
  },
  retry: { flag: '--retry <json>', text: 'retry policy: a JSON object', read: object('--retry') },
  maxAttempts: { flag: '--max-attempts <n>', text: 'maximum number of attempts', read: integer(0, 1_000_000) },
  meta: { flag: '--meta <json>', text: 'metadata of the job: a JSON object', read: object('--meta') },
  tags: { flag: '--tag <tag>', text: 'tag; may be given several times', read: list },
  retention: {
    flag: '--retention <json>',
    text: 'how long to keep the job after it ends: a JSON object',
    read: object('--retention'),
  },
  targetUrl: { flag: '--target-url <url>', text: 'URL that the job is sent to' },
  unique: { flag: '--unique <json>', text: 'unique policy: a JSON object', read: object('--unique') },
  rateLimit: {
    flag: '--rate-limit <json>',
    text: 'rate and concurrency limit: a JSON object',
    read: object('--rate-limit'),
  },
  schema: { flag: '--schema <name>', text: 'name of the schema of its arguments' },
  // The program has a flag --version.
  version: { flag: '--schema-version <version>', text: 'version of the schema', read: jsonOrText },
};

/** Reads a flag that is a JSON object. */
function object(flag: string) {
  return (text: string): unknown => {
    const value = json(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
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

function flagOf(name: ClientOption): Flag {
  const wire = wireName(name);
  const usual = { flag: `--${wire.replaceAll('_', '-')} <value>`, text: `${wire}: JSON or text`, read: jsonOrText };
  return FLAGS[name] ?? usual;
}

/** The options of a job, each with its flag. */
const OPTIONS = CLIENT_OPTIONS.map((name) => {
  const { flag, text, read } = flagOf(name);
  const option = new Option(flag, text);
  if (read) option.argParser(read as (value: string) => unknown);
  return { name, option };
});

export function addJobFlags(command: Command): Command {
  for (const { option } of OPTIONS) command.addOption(option);
  return command;
}

export function jobOptionsIn(flags: object): EnqueueOptions {
  const given = OPTIONS.flatMap(({ name, option }) => {
    const value: unknown = Reflect.get(flags, option.attributeName());
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(given);
}
