/** A stored job in an exported file, whatever the clock says: running ones wait, their attempt unused. Epoch ms. */
import { MOST_RECURSION, parseExactly } from '../job/envelope/exact';
import {
  isObject,
  optional,
  type Reader,
  readAny,
  readBoolean,
  reader,
  readInteger,
  readList,
  readNumber,
  readObject,
  readString,
  readUuidV7,
  readWord,
} from '../job/envelope/fields';
import { isSuspicious } from '../job/envelope/json-text';
import { type Members, type MembersOf, nullable, readMembers, required } from '../job/envelope/members';
import { isJobType, TYPE_RULE } from '../job/envelope/names';
import { outlineOf } from '../job/envelope/nesting';
import { type ParseContext, parseJob, withFingerprint } from '../job/envelope/parse';
import { FLAWS, unstorableIn } from '../job/envelope/storable';
import { invalidPayload, invalidRequest } from '../job/errors';
import type { LogLine } from '../job/log';
import { optionsThat } from '../job/options';
import type {
  Awaited,
  Coalesced,
  JobBody,
  JobErrorEntry,
  JobHistory,
  JobRecord,
  Snoozed,
  UnusedClaims,
} from '../job/record';
import { MAX_HELD } from '../job/runs';
import { readStepPart, type StepPart } from '../job/steps';

/** `waiting`: it is scheduled, available or retryable, by its `due_at` and the clock. `dead`: a dead letter. */
export const STORED_STATES = ['waiting', 'pending', 'completed', 'cancelled', 'discarded', 'dead'] as const;
export type StoredState = (typeof STORED_STATES)[number];

/** A job between a file and its queue; the texts are JSON. */
export interface StoredJob extends Pick<JobRecord, 'id' | 'type' | 'priority' | 'created_at' | 'enqueued_at' | 'body'> {
  state: StoredState;
  /** Attempts used up, and claims over its whole life. */
  attempt: number;
  claims: number;
  /** When it becomes available, unless it was immediate. */
  due_at?: number;
  expires_at?: number;
  ended_at?: number;
  /** In a strict order: it has begun, and all others of its group wait for its end. */
  holds?: true;
  history?: string;
  checkpoint?: { sequence: number; created_at: number; content: string; parts?: StepPart[] };
  run?: CompletedRun;
}

/** The attempt that has completed a job. */
export interface CompletedRun {
  started_at: number;
  /** JSON. */
  result?: string;
  /** Its execution limit, of a pushed one. */
  timeout_ms?: number;
  worker_id?: string;
  target?: string;
  /** The last report. */
  progress?: { progress: number; message?: string; data?: Record<string, unknown>; at: number };
}

/**
 * Parses a line of a file. Whatever a queue has stored comes in again. So a value may have halves of surrogate pairs,
 * and nests as deeply as it did there, which requests may not.
 * @throws {ApiError} 400
 */
export function parseLine(text: string): unknown {
  const outline = outlineOf(text, MOST_RECURSION);
  if (outline.depth > MOST_RECURSION) throw invalidPayload(`The line nests more than ${MOST_RECURSION} levels deep.`);
  let value: unknown;
  try {
    value = parseExactly(text, outline);
  } catch {
    throw invalidPayload('The line is not valid JSON.');
  }
  const problem = isSuspicious(text, outline) ? unstorableIn(value, MOST_RECURSION, true) : undefined;
  if (problem) throw invalidPayload(`The line ${FLAWS[problem.flaw]}.`);
  return value;
}

/** The end of the year 9999. */
const MAX_TIME = 253_402_300_799_999;
const readMoment = readInteger(0, MAX_TIME);
const readCount = readInteger(0, Number.MAX_SAFE_INTEGER);
const readTrue = reader((value) => (value === true ? value : undefined), 'must be true');
const readLength = readNumber(0, Number.MAX_SAFE_INTEGER);

/** An object of these members and no others, in the file's order: all that is stored, so none is forgotten. */
const exactly =
  <T extends object>() =>
  <M extends Members & Record<keyof T & string, Members[string]>>(members: M): Reader<MembersOf<M>> => {
    const read = readMembers(members, (path) => invalidRequest(path, `${path} is not known.`));
    return (value, field) => {
      const result: Record<string, unknown> = read(value, field);
      const names = Object.keys(value as object).filter((name) => Object.hasOwn(result, name));
      return Object.fromEntries(names.map((name) => [name, result[name]])) as MembersOf<M>;
    };
  };

const readFailure = exactly<JobErrorEntry>()({
  attempt: required(readCount),
  occurred_at: required(readMoment),
  duration_ms: required(nullable(readLength)),
  code: required(readString),
  type: required(readString),
  message: required(readString),
  retryable: readBoolean,
  details: nullable(readAny),
  stack: readString,
  backoff_ms: required(nullable(readLength)),
  reason: required(nullable(readString)),
  worker_id: readString,
  target: readString,
});

const readLogLine = exactly<LogLine>()({
  at: required(readMoment),
  level: required(readWord(['debug', 'info', 'warn', 'error'])),
  message: required(readString),
  fields: nullable(readAny),
});

const readHistory = exactly<JobHistory>()({
  error: readFailure,
  errors: readList(1000, readFailure),
  ...{ started_at: readMoment, first_started_at: readMoment, completed_at: readMoment },
  ...{ cancelled_at: readMoment, discarded_at: readMoment },
  retry_delay_ms: readLength,
  reason: readString,
  told_until: readMoment,
  ...{ unreported: readBoolean, dead_letter: readBoolean },
  snoozed: exactly<Snoozed>()({
    since: required(readMoment),
    until: required(readMoment),
    signal: readString,
    runs: readList(1000, readString),
    claim: required(readCount),
  }),
  begun: readCount,
  log: readList(100, readLogLine),
  unused: exactly<UnusedClaims>()({
    attempt: required(readCount),
    claim: required(readCount),
    count: required(readCount),
    at: required(readMoment),
    worker_id: readString,
  }),
  undo_job: readUuidV7,
  outlived: readTrue,
});

const readRun = exactly<CompletedRun>()({
  started_at: required(readMoment),
  result: nullable(readAny),
  timeout_ms: readCount,
  worker_id: readString,
  target: readString,
  progress: exactly<NonNullable<CompletedRun['progress']>>()({
    progress: required(readNumber(0, 1)),
    message: readString,
    data: readObject,
    at: required(readMoment),
  }),
});

const readCheckpoint = exactly<NonNullable<StoredJob['checkpoint']>>()({
  sequence: required(readCount),
  created_at: required(readMoment),
  content: required(readObject),
  parts: readList(1_000, readStepPart),
});

const readJobLine = exactly<StoredJob>()({
  id: required(readUuidV7),
  type: required(readString),
  state: required(readWord(STORED_STATES)),
  priority: required(readInteger(-100, 100)),
  ...{ attempt: required(readCount), claims: required(readCount) },
  ...{ created_at: required(readMoment), enqueued_at: required(readMoment) },
  ...{ due_at: readMoment, expires_at: readMoment, ended_at: readMoment },
  holds: readTrue,
  history: readHistory,
  checkpoint: readCheckpoint,
  run: readRun,
  body: required(readObject),
});

/** Members of a body that are not options. */
const BESIDE = [
  ...['type', 'args', 'meta', 'expires_at_written', 'fingerprint', 'coalesced', 'parent_results', 'awaited', 'extra'],
];
const STORED_OPTIONS = optionsThat('stored');
const BODY: ReadonlySet<string> = new Set([...BESIDE, ...STORED_OPTIONS]);

const readCoalesced = exactly<Coalesced>()({ since: required(readMoment), calls: required(readCount) });
const readAwaited = exactly<Awaited>()({
  by: required(readUuidV7),
  queue: required(readString),
  name: required(readString),
  claim: required(readCount),
  index: readCount,
  depth: required(readCount),
  holds: readList(MAX_HELD, readAny) as Reader<[string, string][]>,
});
const FINGERPRINT = /^[0-9a-f]{64}$/;

/** Where a job is read from, and where it goes. */
export interface StoredContext extends Pick<ParseContext, 'now' | 'readTarget'> {
  /** Path of the job in messages. */
  path: string;
  /** The queue that takes it, and the one that it comes from. */
  queue: string;
  from: string;
}

/** Reads a job of a file. @throws {ApiError} 400, 413, 422 naming the member that is wrong; `details.field` */
export async function readStoredJob(value: unknown, context: StoredContext): Promise<StoredJob> {
  const { path } = context;
  const line = readJobLine(value, path);
  const { history, checkpoint, run, body, ...job } = line;
  checkEnd(line, path);
  const stored: StoredJob = { ...job, body: await bodyText(body, job.type, context) };
  if (history) stored.history = JSON.stringify(history);
  if (checkpoint) stored.checkpoint = { ...checkpoint, content: JSON.stringify(checkpoint.content) };
  if (run) {
    const { result, ...rest } = run;
    stored.run = { ...rest, ...(result !== undefined && { result: JSON.stringify(result) }) };
  }
  return stored;
}

/** A job has the members of its state, and no others. */
function checkEnd(job: { state: StoredState; ended_at?: number; due_at?: number; run?: unknown }, path: string): void {
  const hasEnded = job.state !== 'waiting' && job.state !== 'pending';
  const wrong = (name: string, rule: string) => invalidRequest(`${path}.${name}`, `${path}.${name} ${rule}.`);
  const belongs = (name: 'ended_at' | 'due_at' | 'run', fits: boolean, isRequired: boolean) => {
    if (!fits && job[name] !== undefined) throw wrong(name, `does not go with the state ${job.state}`);
    if (isRequired && job[name] === undefined) throw wrong(name, `is required with the state ${job.state}`);
  };
  belongs('ended_at', hasEnded, hasEnded);
  belongs('due_at', job.state === 'waiting', false);
  belongs('run', job.state === 'completed', job.state === 'completed');
}

/** Checks what its producer wrote, as of a new job. @returns its text */
async function bodyText(body: Record<string, unknown>, type: string, context: StoredContext): Promise<string> {
  const path = `${context.path}.body`;
  for (const name of Object.keys(body)) {
    if (!BODY.has(name)) throw invalidRequest(`${path}.${name}`, `${path}.${name} is not known.`);
  }
  if (!isJobType(type)) throw invalidRequest(`${context.path}.type`, `${context.path}.type ${TYPE_RULE}.`);
  if (body.type !== type) throw invalidRequest(`${path}.type`, `${path}.type must be the type of the job.`);
  const { extra, fingerprint, coalesced, parent_results, awaited, expires_at_written, ...rest } = body;
  const { scheduled_at, expires_at, ...written } = rest;
  optional(body, 'awaited', readAwaited, `${path}.`);
  for (const name of ['scheduled_at', 'expires_at']) optional(body, name, readMoment, `${path}.`);
  optional(body, 'expires_at_written', readString, `${path}.`);
  optional(body, 'coalesced', readCoalesced, `${path}.`);
  if (fingerprint !== undefined && !(typeof fingerprint === 'string' && FINGERPRINT.test(fingerprint))) {
    throw invalidRequest(`${path}.fingerprint`, `${path}.fingerprint must be 64 hexadecimal digits.`);
  }
  if (parent_results !== undefined && !Array.isArray(parent_results)) {
    throw invalidRequest(`${path}.parent_results`, `${path}.parent_results must be an array.`);
  }
  if (extra !== undefined && !isObject(extra))
    throw invalidRequest(`${path}.extra`, `${path}.extra must be an object.`);
  const { now, readTarget, queue, from } = context;
  const parsed = parseJob(
    { ...extra, ...written },
    {
      ...{ now, path, queue, accepted: true },
      ...(readTarget && { readTarget }),
    },
  );
  if (fingerprint === undefined || queue === from || !parsed.unique) return JSON.stringify(body);
  // It names its queue, which is another one now.
  return JSON.stringify({
    ...body,
    fingerprint: (await withFingerprint(parsed)).body.fingerprint,
  } as unknown as JobBody);
}
