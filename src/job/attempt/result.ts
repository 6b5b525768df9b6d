/** The result of a run: kept, or why it cannot be kept. */
import { fitsBytes, utf8Bytes } from '../bytes';
import { MAX_RESULT_BYTES } from '../envelope/names';
import { FLAWS, unstorableIn } from '../envelope/storable';
import { type ErrorData, payloadTooLarge, refusal } from '../errors';
import { type AttemptOutcome, failed } from './outcome';

export type KeptResult = { text: string } | { why: UnkeptResult };

/** Why a result cannot be kept. Another run would return the same, so it ends the job. */
export interface UnkeptResult {
  code: 'result_too_large' | 'result_too_deep' | 'result_not_text' | 'result_out_of_range';
  message: string;
  bytes?: number;
}

export function keptResult(value: unknown): KeptResult {
  const flaw = unstorableIn(value)?.flaw;
  if (flaw !== undefined) return { why: { code: `result_${flaw}`, message: `The result ${FLAWS[flaw]}.` } };
  const text = JSON.stringify(value);
  if (fitsBytes(text, MAX_RESULT_BYTES)) return { text };
  const bytes = utf8Bytes(text);
  return { why: { ...tooLarge(`${bytes} bytes`), bytes } };
}

const tooLarge = (size: string): UnkeptResult => ({
  code: 'result_too_large',
  message: `The result has ${size}, at most ${MAX_RESULT_BYTES} are kept.`,
});

export const unkept = ({ code, message }: UnkeptResult): AttemptOutcome =>
  failed({ code, type: code, message, retryable: false });

export const tooLargeResult = (size: string): AttemptOutcome => unkept(tooLarge(size));

export function refusalOfResult({ code, message, bytes }: UnkeptResult): ErrorData {
  if (bytes !== undefined) return payloadTooLarge('result', bytes, MAX_RESULT_BYTES).data;
  return refusal(400, 'invalid_request', message, { type: code, details: { field: 'result' } }).data;
}
