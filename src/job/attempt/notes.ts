/** What a run reports while it continues: its progress, and what its next attempt needs. */
import { utf8Bytes } from '../bytes';
import {
  defined,
  optional,
  type Reader,
  reader,
  readInteger,
  readObject,
  readText,
  withinBytes,
} from '../envelope/fields';
import { MAX_META_BYTES } from '../envelope/names';
import { MAX_DEPTH, nestingDepth } from '../envelope/nesting';
import { FLAWS, unstorableIn } from '../envelope/storable';
import { invalidRequest, payloadTooLarge } from '../errors';

const MAX_MESSAGE = 8192;
/** Largest checkpoint, in bytes of the JSON texts of its state and metadata. */
const MAX_CHECKPOINT_BYTES = 1_048_576;

/** What a handler saves to continue from after a failure. */
export interface CheckpointContent {
  state: unknown;
  step_index?: number;
  metadata?: Record<string, unknown>;
}

export interface Progress {
  /** 0 … 1. */
  progress: number;
  message?: string;
  data?: Record<string, unknown>;
}

/** What a sum of fractions may be beside its range. */
const ROUNDING = 1e-9;

/** A number from 0 to `max`, which rounding may have put beside it. */
const readPart = (max: number, advice: string): Reader<number> =>
  reader((value) => {
    const isInRange = typeof value === 'number' && value >= -max * ROUNDING && value <= max * (1 + ROUNDING);
    return isInRange ? Math.min(Math.max(value, 0), max) : undefined;
  }, `must be a number from 0 to ${max}${advice}`);
const readFraction = readPart(1, '; send percent as percentage');
const readPercentage = readPart(100, '');
const readMessage = readText(
  (text) => text.length <= MAX_MESSAGE,
  `must be a string of at most ${MAX_MESSAGE} characters`,
);

/** `progress` 0 … 1 or `percentage` 0 … 100. @throws {ApiError} 400 or 413; undefined when neither is there */
export function readProgress(body: Record<string, unknown>, path = ''): Progress | undefined {
  const fraction = optional(body, 'progress', readFraction, path);
  const percentage = optional(body, 'percentage', readPercentage, path);
  const progress = fraction ?? (percentage === undefined ? undefined : percentage / 100);
  if (progress === undefined) return undefined;
  const message = optional(body, 'message', readMessage, path);
  const data = optional(body, 'data', readObject, path);
  if (data !== undefined) withinBytes(storableText(data, `${path}data`), MAX_META_BYTES, `${path}data`);
  return { progress, ...defined({ message, data }) };
}

/** The stored form of a checkpoint. @param field its largest member @throws {ApiError} 400, or 413 above 1 MiB */
export function checkpointContent(body: Record<string, unknown>, field = 'state'): string {
  const step = optional(body, 'step_index', readInteger(0, Number.MAX_SAFE_INTEGER));
  const metadata = optional(body, 'metadata', readObject);
  if (body.state === undefined && step === undefined && metadata === undefined) {
    throw invalidRequest('state', 'state is required; any JSON value is accepted.');
  }
  const content: CheckpointContent = { state: body.state ?? null, ...defined({ step_index: step, metadata }) };
  const sizeOf = (value: unknown) => utf8Bytes(storableText(value, field));
  const bytes = sizeOf(content.state) + (metadata === undefined ? 0 : sizeOf(metadata));
  if (bytes > MAX_CHECKPOINT_BYTES) throw payloadTooLarge(field, bytes, MAX_CHECKPOINT_BYTES);
  return JSON.stringify(content);
}

/** The JSON text of a value, if it can be stored and given back. @throws {ApiError} 400 */
export function storableText(value: unknown, field: string): string {
  const flaw = unstorableIn(value)?.flaw;
  if (flaw !== undefined) throw invalidRequest(field, `${field} ${FLAWS[flaw]}.`);
  return JSON.stringify(value);
}

/** The JSON text, if SQLite can read it too. @throws {ApiError} 400 */
export function storable(text: string, field: string): string {
  // The members around it count.
  if (nestingDepth(text, MAX_DEPTH + 2) <= MAX_DEPTH + 2) return text;
  throw invalidRequest(field, `${field} ${FLAWS.too_deep}.`);
}
