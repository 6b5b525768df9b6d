/**
 * What a handler says about a run: beside its outcome, in an entry of its answer, or as one message while the run goes on,
 * where the call has a live line. Nothing that a handler says makes this throw anything but an {@link ApiError}.
 */

import { checkpointContent, type Progress, readProgress } from '../job/attempt/notes';
import { isObject, parseObject } from '../job/envelope/fields';
import { ApiError, type ErrorData, invalidRequest } from '../job/errors';
import { heardLines, type LogLine } from '../job/log';
import { readStep, readStepName, type Steps, stepsText } from '../job/steps';
import { type DeliveryOutcome, readEntry } from './answer';
import type { EntryText } from './body';

type Json = Record<string, unknown>;

/** Something that is answered once it is durable. */
export type Ask =
  | { kind: 'progress'; progress: Progress }
  /** JSON text of a `CheckpointContent`. */
  | { kind: 'checkpoint'; content: string }
  | { kind: 'steps'; steps: Steps }
  /** Jobs to enqueue, as written. */
  | { kind: 'enqueue'; children: unknown };

/** What a handler says while it runs. */
export type Message = Ask | { kind: 'log'; lines: LogLine[] };

/** A line of an answer that is said as it goes, about one delivery. */
export type Heard = { id: string } & (
  | { kind: 'outcome'; outcome: DeliveryOutcome }
  | { kind: 'log'; lines: LogLine[] }
  | { kind: 'call'; call: number; ask: Ask }
  | { kind: 'wrong'; call: number; error: ErrorData }
);

/** Reads a line; undefined when it says nothing that this side knows. */
export function readLine(line: EntryText, now: number): Heard | undefined {
  const entry = line.isWhole ? parseObject(line.text) : undefined;
  if (!entry || 'status' in entry) {
    const ended = readEntry(line, now);
    return ended && { kind: 'outcome', ...ended };
  }
  const { delivery_id: id, call, log } = entry;
  if (typeof id !== 'string') return undefined;
  if (typeof call !== 'number' || !Number.isSafeInteger(call)) {
    return log === undefined ? undefined : { kind: 'log', id, lines: heardLines(log, now) };
  }
  try {
    return { kind: 'call', id, call, ask: readAsk(entry) };
  } catch (error) {
    return { kind: 'wrong', id, call, error: refusalOf(error) };
  }
}

function readAsk(entry: Json): Ask {
  if ('progress' in entry) return { kind: 'progress', progress: mustProgress(entry.progress) };
  if ('checkpoint' in entry) {
    return { kind: 'checkpoint', content: checkpointContent({ state: entry.checkpoint ?? null }, 'checkpoint') };
  }
  if ('step' in entry) {
    const step = isObject(entry.step) ? entry.step : {};
    const { name, until, timed_out, error, result } = step;
    const record = defaulted({ until, timed_out, error }) ?? { result };
    const steps = { [readStepName(name, 'step.name')]: readStep(record, 'step') };
    stepsText(steps);
    return { kind: 'steps', steps };
  }
  if ('enqueue' in entry) return { kind: 'enqueue', children: entry.enqueue };
  throw invalidRequest('call', 'A call must have progress, checkpoint, step or enqueue.');
}

/** The members that are there; undefined when none is. */
function defaulted(members: Json): Json | undefined {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return given.length > 0 ? Object.fromEntries(given) : undefined;
}

function mustProgress(value: unknown): Progress {
  const progress = isObject(value) ? readProgress(value, 'progress.') : undefined;
  if (progress) return progress;
  throw invalidRequest('progress', 'progress must be an object with progress, 0 to 1.');
}

/** What a call is refused with: nothing that a handler says is a defect of this side. */
export function refusalOf(error: unknown): ErrorData {
  if (error instanceof ApiError) return error.data;
  const message = error instanceof Error ? error.message : String(error);
  return invalidRequest('call', `The call cannot be read: ${message}`).data;
}
