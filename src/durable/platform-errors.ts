/**
 * Errors of the platform in the shape of the product's own, read by {@link errorDataOf} only:
 *
 * | the platform reports | answer |
 * | --- | --- |
 * | the object has no such method: it still runs another version | 503 `unavailable` |
 * | `durableObjectReset`, `retryable`, a lost connection | 503 `unavailable` |
 * | `overloaded`: an immediate retry makes it worse | 503 `unavailable` |
 * | a daily limit of the free plan is used up | 503 `daily_limit_exceeded`, until 00:00 UTC |
 * | the class was created with `new_classes` | 500 `invalid_configuration` |
 * | its storage is full, or fails | 503, see {@link storageFailure} |
 *
 * They are not an {@link ApiError}: a refusal changed nothing, one of these may hide a success.
 */
import { ApiError, apiErrorData, type ErrorData, invalidConfiguration, unavailable } from '../job/errors';
import { storageFailure } from '../job/storage-failure';
import { isPausedUntil } from './backoff';
import { onEmptied } from './memory';

/** What the runtime says of a method that the object's version does not have, or has as something else. */
const NO_METHOD = /^The RPC receiver does not implement the method "|^"[^"]*" is not a function\.$/;
const LOST = /^Network connection lost/;
const USED_UP = /Exceeded allowed (.+?) in Durable Objects free tier/;
const NO_SQLITE = /not backed by SQLite|SQL is not enabled/;

/** Objects take up to minutes after a deploy until they run the new version. */
export const OTHER_VERSION = { reason: 'other_version', afterS: 10 };
const OVERLOADED = { reason: 'overloaded', afterS: 5 };
const RESET = { reason: 'reset', afterS: 1 };
const CONNECTION_LOST = { reason: 'connection_lost', afterS: 1 };

const DAY_MS = 24 * 3_600_000;

/** The members by which the runtime marks an error. */
type Marked = Error & { overloaded?: unknown; retryable?: unknown; durableObjectReset?: unknown };

/** The error data of a thrown error of this code, an object or the platform; undefined: a defect. @param now in ms */
export const errorDataOf = (thrown: unknown, now = Date.now()): ErrorData | undefined =>
  apiErrorData(thrown) ??
  (thrown instanceof Error ? platformError(thrown, now)?.data : undefined) ??
  storageFailure(thrown);

/** Was a method called, or asked for, that the object's version does not have? */
export const isMissingMethod = (thrown: unknown): boolean => thrown instanceof Error && NO_METHOD.test(thrown.message);

/** The daily limit that this isolate has seen used up last, and until when, epoch ms. */
let lastUsedUp: { limit: string; until: number } | undefined;
onEmptied(() => {
  lastUsedUp = undefined;
});

/** The refusal of a daily limit that is used up, if this isolate has met one. @param now epoch ms */
export function dailyLimitUsedUp(now: number): ErrorData | undefined {
  if (!lastUsedUp || !isPausedUntil(lastUsedUp.until, now, DAY_MS)) return undefined;
  return dailyLimit(lastUsedUp.limit, lastUsedUp.until, now).data;
}

function platformError(thrown: Marked, now: number): ApiError | undefined {
  const { message } = thrown;
  if (NO_SQLITE.test(message)) {
    const what = 'A class of objects has no SQLite storage. List it in new_sqlite_classes, not in new_classes.';
    return invalidConfiguration(what, { setting: 'migrations.new_sqlite_classes' });
  }
  const [, limit] = USED_UP.exec(message) ?? [];
  if (limit !== undefined) {
    lastUsedUp = { limit, until: (Math.floor(now / DAY_MS) + 1) * DAY_MS };
    return dailyLimit(limit, lastUsedUp.until, now);
  }
  if (isMissingMethod(thrown)) {
    return passing('The object still runs another version of the code.', OTHER_VERSION);
  }
  // An object whose write failed is reset, too: the cause says more.
  if (message.includes('SQLITE_') && storageFailure(thrown)) return undefined;
  if (thrown.overloaded === true) return passing('The object is overloaded.', OVERLOADED);
  if (thrown.durableObjectReset === true) return passing('The object was restarted during the request.', RESET);
  if (thrown.retryable === true || LOST.test(message)) {
    return passing('The connection to the object was lost.', CONNECTION_LOST);
  }
  return undefined;
}

/** 503 for what ends by itself. @param why what `details` say, and when to try again, s */
export const passing = (message: string, { reason, afterS }: { reason: string; afterS: number }): ApiError =>
  new ApiError({ ...unavailable(message, afterS).data, details: { reason } });

function dailyLimit(limit: string, until: number, now: number): ApiError {
  const { headers } = unavailable('', Math.ceil((until - now) / 1000)).data;
  return new ApiError({
    status: 503,
    code: 'daily_limit_exceeded',
    message: `The daily limit of the free plan is used up (${limit}). Requests that need it fail until 00:00 UTC.`,
    retryable: true,
    details: { limit, resets_at: new Date(until).toISOString() },
    ...(headers && { headers }),
  });
}
