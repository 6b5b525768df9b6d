/** Shows what a retry policy would do: `POST /ojs/v1/admin/retry/preview` (`docs/guides/retries.md`). */
import type { AttemptFailure } from '../attempt/outcome';
import {
  defined,
  isObject,
  readAny,
  readBoolean,
  readDuration,
  reader,
  readInteger,
  readList,
  readString,
} from '../envelope/fields';
import { notMember, readMembers } from '../envelope/members';
import { invalidPayload } from '../errors';
import type { RetryInput } from '../record';
import { parseInstant } from '../time';
import { decideFailure } from './decide';
import { delayBounds, retryDelay } from './delay';
import { MAX_ATTEMPTS } from './layer';
import type { RetryPolicy } from './policy';
import { describeRetry, type RetryLayers, resolveRetry } from './resolve';
import { checkRetry, checkRetryLayer } from './validate';
import { RETRY_VARIABLES, type RetryVariables } from './variables';

/** Stands for the job id, so that a deterministic jitter answers the same each time. */
const PREVIEW_JOB_ID = '00000000-0000-7000-8000-000000000000';

const readVariable = reader(
  (value) => (typeof value === 'string' || typeof value === 'number' ? String(value) : undefined),
  'must be a string',
);

/** A failure of the request. @param now epoch ms */
const failureReader = (now: number) =>
  readMembers(
    {
      ...{ code: readString, error_type: readString, error_classes: readList(10_000, readString) },
      ...{ retryable: readBoolean, kill: readBoolean },
      retry_in: readDuration,
      retry_at: reader(
        (value) => (Number.isInteger(value) || parseInstant(value, now) !== undefined ? value : undefined),
        'must be an RFC 3339 time with a zone, or epoch milliseconds',
      ),
      ...{ crash: readBoolean, visibility_expired: readBoolean, no_handler: readBoolean },
    },
    notMember,
  );

const readVariables = readMembers(Object.fromEntries(RETRY_VARIABLES.map((name) => [name, readVariable])), notMember);

/** Reads a request. @param now epoch ms */
export const previewReader = (now: number) =>
  readMembers(
    {
      policy: readAny,
      layers: readMembers({ variables: readVariables, queue: readAny, job_type: readAny }, notMember),
      from: readInteger(1, MAX_ATTEMPTS),
      attempts: readInteger(1, 100),
      random: reader(
        (value) => (typeof value === 'number' && value >= 0 && value < 1 ? value : undefined),
        'must be a number, at least 0 and below 1',
      ),
      failure: failureReader(now),
    },
    notMember,
  );

export interface PreviewContext {
  /** Epoch ms. */
  now: number;
  variables?: RetryVariables;
}

/** One row: the delay after the `failed_executions`-th failure. */
export interface PreviewRow {
  failed_executions: number;
  /** At the given `random`. */
  delay_ms: number;
  /** Bounds over all random values. */
  min_ms: number;
  max_ms: number;
  /** Sum of `delay_ms` from the first row on. */
  cumulative_ms: number;
}

export interface RetryPreview {
  effective: Record<string, unknown>;
  delays: PreviewRow[];
  decision?: { outcome: 'retry' | 'discarded' | 'dead_letter'; reason?: string; delay_ms?: number };
}

/** Computes a preview. @throws {ApiError} 400; 422 for a policy (`layers.queue.…`); 500 for bad variables */
export function previewRetry(request: unknown, context: PreviewContext): RetryPreview {
  if (!isObject(request)) throw invalidPayload('The body must be a JSON object.');
  const read = previewReader(context.now)(request, '');
  const { from = 1, attempts = 10, random: r = 0.5, failure } = read;
  const policy = resolveRetry(checkedLayers(read, context));
  const random = (): number => r;

  const effective = describeRetry(policy);
  const delays = delayRows(policy, from, attempts, random);
  if (!failure) return { effective, delays };
  const { error_type: type, error_classes: classes, ...rest } = failure;
  const failed: AttemptFailure = { ...rest, ...defined({ type, classes }) };
  const decision = decideFailure(policy, failed, from, { now: context.now, random, jobId: PREVIEW_JOB_ID });
  return {
    effective,
    delays,
    decision:
      decision.outcome === 'retry' ? { outcome: decision.outcome, delay_ms: decision.delay_ms } : { ...decision },
  };
}

function delayRows(policy: RetryPolicy, from: number, attempts: number, random: () => number): PreviewRow[] {
  let cumulative = 0;
  return Array.from({ length: attempts }, (_, index) => {
    const n = from + index;
    const delay = retryDelay(policy, n, random, PREVIEW_JOB_ID);
    const { min, max } = delayBounds(policy, n);
    cumulative += delay;
    return { failed_executions: n, delay_ms: delay, min_ms: min, max_ms: max, cumulative_ms: cumulative };
  });
}

/** The layers from the lowest up, each checked over those below it. */
function checkedLayers(
  { layers = {}, policy }: ReturnType<ReturnType<typeof previewReader>>,
  context: PreviewContext,
): RetryLayers {
  const variables = layers.variables ?? context.variables;
  const below: RetryLayers = variables ? { variables } : {};
  const checked = (input: unknown, path: string): RetryInput => {
    const job = checkRetryLayer(input, path);
    checkRetry({ ...below, job }, path);
    return job;
  };
  below.queue = checked(layers.queue, 'layers.queue');
  below.job_type = checked(layers.job_type, 'layers.job_type');
  return { ...below, job: checked(policy, 'retry') };
}
