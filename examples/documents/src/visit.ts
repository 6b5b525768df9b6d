/** Asks a server whether a page exists. */
import { retryIn } from '../../../src/handler';

/** The page may exist, but its server cannot say so now. A plain error, so the job's retry policy decides. */
export class PageUnavailable extends Error {
  constructor(
    message: string,
    readonly details: { url: string; status?: number },
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

/** Sends a request; the global `fetch` in the Worker. */
export type Fetch = (url: string, init: { redirect: 'manual'; signal: AbortSignal }) => Promise<Response>;

/** Statuses that say nothing about the page. */
const TEMPORARY = new Set([408, 425, 429]);
const GONE = new Set([404, 410]);

/**
 * Visits a page at the address of its origin. Redirects are not followed: any answer counts.
 * @returns false when the server says that there is no such page
 * @throws {PageUnavailable} when the server fails or cannot be reached
 * @throws {RetryLaterError} when it fails and names a time to come back
 * @throws the reason of `signal` when time is up
 */
export async function pageExists(url: URL, reachedAt: string, fetch: Fetch, signal: AbortSignal): Promise<boolean> {
  const address = new URL(`${url.pathname}${url.search}`, reachedAt);
  let response: Response;
  try {
    response = await fetch(address.href, { redirect: 'manual', signal });
  } catch (cause) {
    signal.throwIfAborted();
    throw new PageUnavailable(`${url.host} cannot be reached`, { url: url.href }, cause);
  }
  const { status, headers } = response;
  await response.body?.cancel();
  if (status < 500 && !TEMPORARY.has(status)) return !GONE.has(status);
  const message = `${url.href} answered ${status}`;
  const seconds = headers.get('Retry-After');
  if (seconds !== null && /^\d{1,6}$/.test(seconds)) {
    throw retryIn(Number(seconds) * 1000, message, { type: 'PageUnavailable', details: { url: url.href, status } });
  }
  throw new PageUnavailable(message, { url: url.href, status });
}
