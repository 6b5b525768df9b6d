/** Messages of a handler about a run, in its answer or over a live connection. Throws nothing but {@link ApiError}. */

import { checkpointContent, type Progress, readProgress } from '../job/attempt/notes';
import type { AttemptOutcome, RunNote } from '../job/attempt/outcome';
import { isObject, parseObject } from '../job/envelope/fields';
import { ApiError, type ErrorData, invalidRequest } from '../job/errors';
import { heardLines, type LogLine } from '../job/log';
import { readStepName, readStepSaid } from '../job/steps';
import { readNamedStream, type StreamSaid } from '../job/streams';
import { messageOf } from '../job/thrown';
import { readEntry } from './answer';
import type { EntryText } from './body';

type Json = Record<string, unknown>;

/** A message that is answered once it is durable. @param children jobs to enqueue, as written */
export type RunRequest =
  | RunNote
  | { kind: 'enqueue'; children: unknown }
  | { kind: 'recall'; name: string }
  | { kind: 'stream'; said: StreamSaid }
  | { kind: 'signal_url'; asked: Record<string, unknown> };

export type RunMessage = RunRequest | { kind: 'log'; lines: LogLine[] };

export type StreamedLine = { id: string } & (
  | { kind: 'outcome'; outcome: AttemptOutcome }
  | { kind: 'log'; lines: LogLine[] }
  | { kind: 'call'; call: number; ask: RunRequest }
  | { kind: 'wrong'; call: number; error: ErrorData }
);

/** Reads a line; undefined when it has no known meaning. */
export function readLine(line: EntryText, now: number): StreamedLine | undefined {
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

function readAsk(entry: Json): RunRequest {
  if ('progress' in entry) return { kind: 'progress', ...mustProgress(entry.progress) };
  if ('checkpoint' in entry) {
    return { kind: 'checkpoint', content: checkpointContent({ state: entry.checkpoint ?? null }, 'checkpoint') };
  }
  if ('step' in entry) {
    const step = isObject(entry.step) ? entry.step : {};
    const name = readStepName(step.name, 'step.name');
    return { kind: 'step', name, record: JSON.stringify(readStepSaid(step)) };
  }
  if ('recall' in entry) return { kind: 'recall', name: readStepName(entry.recall, 'recall') };
  if ('stream' in entry) return { kind: 'stream', said: readNamedStream(entry.stream) };
  if ('enqueue' in entry) return { kind: 'enqueue', children: entry.enqueue };
  if (isObject(entry.signal_url)) return { kind: 'signal_url', asked: entry.signal_url };
  throw invalidRequest('call', 'A call must have progress, checkpoint, step, stream, recall, enqueue or signal_url.');
}

function mustProgress(value: unknown): Progress {
  const progress = isObject(value) ? readProgress(value, 'progress.') : undefined;
  if (progress) return progress;
  throw invalidRequest('progress', 'progress must be an object with progress, 0 to 1.');
}

/** The refusal of a call: no message of a handler is a defect of this side. */
export function refusalOf(error: unknown): ErrorData {
  if (error instanceof ApiError) return error.data;
  const message = messageOf(error);
  return invalidRequest('call', `The call cannot be read: ${message}`).data;
}
