/** A cron entry as its owner wrote it (`docs/guides/schedules.md`). Only {@link parseCron} decides what is valid. */
import {
  defined,
  given,
  isObject,
  optional,
  type Reader,
  readBoolean,
  readInteger,
  readName,
  readText,
  readWord,
  withinBytes,
} from '../job/envelope/fields';
import { nullable, readMembers } from '../job/envelope/members';
import { MAX_ENVELOPE_BYTES, MAX_META_BYTES } from '../job/envelope/names';
import { parseJob, readTime } from '../job/envelope/parse';
import { invalidRequest } from '../job/errors';
import type { JobBody, NewJob } from '../job/record';
import { quote } from '../job/text';
import { formatInstant } from '../job/time';
import { fingerprintOf } from '../job/unique/fingerprint';
import { type UnknownMembers, withoutEffect } from '../job/unknown-members';
import { parseExpression } from './expression';
import { MISSED_POLICIES, type MissedPolicy } from './missed';
import { nextFire, type Schedule } from './schedule';
import { asWritten, FLAT_NAMES, FLAT_OPTIONS, readTemplate } from './template';
import { isZone } from './zone';

/** What a fire does while the job of the previous one has not ended: nothing, fire, cancel it and fire, fire later. */
export const OVERLAP_POLICIES = ['skip', 'allow', 'cancel_previous', 'enqueue'] as const;
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number];

/** A validated entry. Times in epoch ms. */
export interface CronDefinition {
  name: string;
  /** As written. */
  expression: string;
  timezone: string;
  overlap_policy: OverlapPolicy;
  missed_policy: MissedPolicy;
  max_catchup: number;
  start_at?: number;
  end_at?: number;
  limit?: number;
  enabled: boolean;
  description?: string;
  group?: string;
  /** The queue its jobs go to, which owns the entry. */
  queue: string;
  /** The job that each fire enqueues, in the form of an enqueue. */
  template: Record<string, unknown>;
  fingerprint?: string;
}

const NAME = /^[a-z0-9][a-z0-9.-]*$/;
const MAX_NAME_LENGTH = 255;

/** Is this the name of an entry, or of a group? */
export function isCronName(text: string): boolean {
  return text.length <= MAX_NAME_LENGTH && NAME.test(text);
}

export const CRON_NAME_RULE = `must be lower-case letters, digits, "." and "-", starting with a letter or digit, at most ${MAX_NAME_LENGTH} characters`;

export const readCronName = readText(isCronName, CRON_NAME_RULE);

export interface CronContext {
  /** Epoch ms. */
  now: number;
  /** The entry's path in the request, e.g. `entries[3]`. */
  path?: string;
  /** The entry that the request changes; members left out stay. */
  base?: CronDefinition;
  /** The name in the path of the request; the body may repeat it. */
  name?: string;
  group?: string | undefined;
  /** Gets the members that nothing reads. */
  unknown?: UnknownMembers | undefined;
  /** Defaults of the request: whether the entry fires, and in which time zone. */
  defaults?: { enabled?: boolean | undefined; timezone?: string | undefined };
}

const EXPRESSION_NAMES = ['expression', 'cron', 'schedule'] as const;

/** What an entry consists of, and what an answer about one says besides: clients send back what they have read. */
const OWN_MEMBERS = [
  ...['name', ...EXPRESSION_NAMES, 'timezone', 'overlap_policy', 'missed_policy', 'missed_fires', 'max_catchup'],
  ...['start_at', 'end_at', 'limit', 'enabled', 'paused', 'description', 'job_template'],
];
const ANSWERED = [
  ...['id', 'status', 'group', 'next_run_at', 'last_run_at', 'last_job_id', 'run_count', 'fire_count', 'skipped_count'],
  ...['waiting', 'created_at', 'updated_at', 'next_fires', 'cron_job', 'type', 'queue', 'args', 'meta', 'options'],
];
const MEMBERS: ReadonlySet<string> = new Set([...OWN_MEMBERS, ...ANSWERED]);
const FLAT_MEMBERS: ReadonlySet<string> = new Set([...MEMBERS, ...FLAT_NAMES, ...FLAT_OPTIONS]);
const aboutMember = withoutEffect([...OWN_MEMBERS, ...FLAT_NAMES, ...FLAT_OPTIONS, 'options']);

/** Reads an entry. @throws {ApiError} 400 naming the field, 413, 422 (a retry policy that is none) */
export async function parseCron(input: Record<string, unknown>, ctx: CronContext): Promise<CronDefinition> {
  const prefix = ctx.path === undefined ? '' : `${ctx.path}.`;
  const { base, now, defaults } = ctx;
  const group = ctx.group ?? base?.group;
  const name = nameOf(input, ctx, prefix);
  const expression = readExpression(input, base?.expression, prefix);
  const missed = readMissed(input, prefix);
  const { paused, ...named } = entryReader(now)(input, ctx.path ?? '');
  // A change may remove some members with null.
  const read = { ...base, ...named };
  const [start, end] = [read.start_at ?? undefined, read.end_at ?? undefined];
  if (start !== undefined && end !== undefined && end < start) {
    throw invalidRequest(`${prefix}end_at`, `${prefix}end_at must not be before ${prefix}start_at.`);
  }
  const { template, path, flat } = readTemplate(input, base?.template, prefix);
  const { unknown } = ctx;
  unknown?.note(input, 'job_template' in input ? MEMBERS : FLAT_MEMBERS, prefix, aboutMember);
  // What does not change was accepted when it was written.
  const accepted = JSON.stringify(template) === JSON.stringify(base?.template);
  const place = defined({ path: path || undefined, unknown, accepted });
  const parsed = asWritten(flat, prefix, () => parseJob(template, { now, ...place }));
  const fingerprint = parsed.unique && (await fingerprintOf(parsed.unique.dimensions));
  const definition: CronDefinition = defined({
    name,
    expression: expression.text,
    timezone: read.timezone ?? defaults?.timezone ?? 'UTC',
    overlap_policy: read.overlap_policy ?? 'skip',
    missed_policy: missed.policy ?? base?.missed_policy ?? 'fire_once',
    max_catchup: missed.max ?? base?.max_catchup ?? 100,
    start_at: start,
    end_at: end,
    limit: read.limit ?? undefined,
    enabled: named.enabled ?? (paused === undefined ? base?.enabled : !paused) ?? defaults?.enabled ?? true,
    description: read.description ?? undefined,
    group,
    queue: parsed.queue,
    template,
    fingerprint,
  });
  const { end: _, ...open } = scheduleOf(definition, now);
  if (nextFire(open, now) === undefined) {
    throw invalidRequest(expression.field, `${expression.field} "${quote(expression.text)}" never fires.`);
  }
  checkSize(definition, now, path);
  return definition;
}

/** The schedule of an entry. @param anchor where intervals count from unless it has a start, epoch ms */
export function scheduleOf(definition: CronDefinition, anchor: number): Schedule {
  return {
    expression: parseExpression(definition.expression, 'expression'),
    zone: definition.timezone,
    anchor: definition.start_at ?? anchor,
    start: definition.start_at,
    end: definition.end_at,
  };
}

export function sameSchedule(a: CronDefinition, b: CronDefinition): boolean {
  return (
    a.expression === b.expression && a.timezone === b.timezone && a.start_at === b.start_at && a.end_at === b.end_at
  );
}

/** One fire. Times in epoch ms. */
export interface Fire {
  now: number;
  /** The time in the schedule that the fire stands for; absent when an operator triggered it. */
  tick?: number;
  /** The job's id, when it must be known in advance. */
  id?: string;
}

/** The job of one fire: the template, with relative times counted from the fire, and a note of where it comes from. */
export function jobOf(definition: CronDefinition, fire: Fire): NewJob {
  const { fingerprint } = definition;
  const parsed = parseJob(definition.template, { now: fire.now, accepted: true });
  const body: JobBody = {
    ...parsed.body,
    meta: {
      ...parsed.body.meta,
      cron_name: definition.name,
      cron_triggered_at: formatInstant(fire.now),
      ...defined({ cron_scheduled_at: given(fire.tick, formatInstant) }),
    },
    ...defined({ fingerprint }),
  };
  const unique = fingerprint !== undefined && parsed.unique && { fingerprint, ...parsed.unique.policy };
  return { ...parsed.job, ...defined({ id: fire.id }), ...(unique && { unique }), body: JSON.stringify(body) };
}

/** The members that a fire adds must fit in the job too. */
function checkSize(definition: CronDefinition, now: number, path: string): void {
  const { body } = jobOf(definition, { now, tick: now });
  const { meta } = JSON.parse(body) as JobBody;
  withinBytes(JSON.stringify(meta), MAX_META_BYTES, path === '' ? 'meta' : `${path}.meta`);
  withinBytes(body, MAX_ENVELOPE_BYTES, path || 'body');
}

function nameOf(input: Record<string, unknown>, { name, base }: CronContext, prefix: string): string {
  const known = name ?? base?.name;
  const written = optional(input, 'name', readCronName, prefix);
  if (known === undefined && written === undefined) throw invalidRequest(`${prefix}name`, `${prefix}name is required.`);
  if (known !== undefined && written !== undefined && written !== known) {
    throw invalidRequest(`${prefix}name`, `${prefix}name cannot be changed; this entry is "${known}".`);
  }
  return written ?? (known as string);
}

/** The expression under any of its names. A client may return all three and have changed one of them. */
function readExpression(
  input: Record<string, unknown>,
  before: string | undefined,
  prefix: string,
): { text: string; field: string } {
  const given = EXPRESSION_NAMES.filter((name) => (input[name] ?? null) !== null);
  const name = given.find((other) => before !== undefined && input[other] !== before) ?? given[0];
  if (name === undefined) {
    if (before !== undefined) return { text: before, field: `${prefix}expression` };
    throw invalidRequest(`${prefix}expression`, `${prefix}expression is required.`);
  }
  const field = prefix + name;
  parseExpression(input[name], field);
  return { text: input[name] as string, field };
}

/** `missed_policy` with `max_catchup`, or both in `missed_fires`. */
function readMissed(input: Record<string, unknown>, prefix: string): { policy?: MissedPolicy; max?: number } {
  const whole = input.missed_fires ?? undefined;
  const nested = isObject(whole);
  const members = nested
    ? { missed_policy: whole.policy ?? whole.kind, max_catchup: whole.max_catchup }
    : { missed_policy: input.missed_policy ?? whole, max_catchup: input.max_catchup };
  const path = nested ? `${prefix}missed_fires.` : prefix;
  const policy = optional(members, 'missed_policy', readMissedPolicy, path);
  const max = optional(members, 'max_catchup', readInteger(1, 1000), path);
  return defined({ policy, max });
}

const readMissedPolicy: Reader<MissedPolicy> = (value, field) =>
  readWord(MISSED_POLICIES)(typeof value === 'string' ? value.replaceAll('-', '_') : value, field);

export const readZone: Reader<string> = (value, field) => {
  if (typeof value === 'string' && isZone(value)) return value;
  const example = 'such as "America/New_York" or "UTC"; offsets and abbreviations ignore daylight saving time';
  throw invalidRequest(
    field,
    `${field} ${quote(JSON.stringify(value))} is not the name of an IANA time zone, ${example}.`,
  );
};

const readDescription: Reader<string> = (value, field) => (value === '' ? '' : readName(1000)(value, field));

/** The members that are read each for itself. @param now epoch ms */
const entryReader = (now: number) =>
  readMembers({
    timezone: readZone,
    overlap_policy: readWord(OVERLAP_POLICIES),
    start_at: nullable(readTime(now)),
    end_at: nullable(readTime(now)),
    limit: nullable(readInteger(1, 1_000_000_000)),
    ...{ enabled: readBoolean, paused: readBoolean },
    description: nullable(readDescription),
  });
