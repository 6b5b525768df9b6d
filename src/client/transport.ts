/** One HTTP exchange with the queue: sends a request, answers parsed JSON or throws a {@link TocsinError}. */

import { isObject, parseJson } from '../handler/protocol';
import { isA, messageOf } from '../job/thrown';
import { aborted, errorFor, TocsinError, UnavailableError, unanswered } from '../producer/errors';
import { named } from '../producer/names';
import type { Address } from './pulse';

export interface RequestOptions {
  method: string;
  headers: Record<string, string>;
  body?: string;
  signal?: AbortSignal;
  redirect?: 'manual';
}

/** Anything with a `fetch` of its own: a service binding, or a Durable Object stub. */
export interface ServiceLike {
  fetch(input: string, init?: RequestOptions): Promise<Response>;
}

export type Endpoint =
  | {
      service: ServiceLike;
      url?: never;
      fetch?: never;
    }
  | {
      /** Origin of the queue's Worker, with an optional path before `/ojs/v1`, which may follow. */
      url: string;
      /** Default: the global `fetch`. */
      fetch?(input: string, init?: RequestOptions): Promise<Response>;
      service?: never;
    };

/** Bindings ignore the host. Keyless deployments serve loopback names, as in `wrangler dev`. */
const BINDING_ORIGIN = 'http://localhost';

export interface SendOptions {
  headers?: Record<string, string>;
  /** Statuses outside 2xx that carry an answer; a body with an `error` and no `items` is a refusal anyway. */
  answers?: readonly number[];
}

/** Sends a request below `/ojs/v1`, or at a path that begins with `/ojs/` itself. */
export type Send = (method: string, path: string, body?: string, options?: SendOptions) => Promise<unknown>;

/** Opens a stream, of events by default; undefined: there is nothing more. @param stop ends it */
export type Open = (
  path: string,
  headers: Record<string, string>,
  stop: AbortSignal,
) => Promise<ReadableStream<Uint8Array> | undefined>;

export interface SendSettings {
  key?: string | undefined;
  /** How long to wait for the answer, in ms. */
  timeoutMs: number;
  /** Aborts all requests under way, and every later one. */
  signal?: AbortSignal | undefined;
  now: () => number;
  onWarning: (warning: string) => void;
}

export function createSend(endpoint: Endpoint, { key, timeoutMs, signal, now, onWarning }: SendSettings): Send {
  const { base, call } = connect(endpoint);
  return async (method, path, body, options = {}) => {
    if (signal?.aborted) throw aborted(signal, false);
    const headers: Record<string, string> = {
      Accept: 'application/openjobspec+json',
      ...(body !== undefined && { 'Content-Type': 'application/openjobspec+json' }),
      ...options.headers,
      ...authorization(key),
    };
    // Nothing of it stays behind when the request is over, as a signal with a timeout of its own would.
    const over = new AbortController();
    const timer = setTimeout(() => over.abort(new DOMException('It took too long.', 'TimeoutError')), timeoutMs);
    const stop = (): void => over.abort(signal?.reason);
    signal?.addEventListener('abort', stop, { once: true });
    const init: RequestOptions = { method, headers, signal: over.signal, redirect: 'manual' };
    if (body !== undefined) init.body = body;
    let response: Response;
    let text: string;
    try {
      response = await call(`${base}${path.startsWith('/ojs/') ? '' : '/ojs/v1'}${path}`, init);
      text = await response.text();
    } catch (cause) {
      if (signal?.aborted) throw aborted(signal, true);
      throw noAnswer(method, path, cause);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
    }
    refuseRedirect(response, base);
    const parsed = parseJson(text);
    const carries = isObject(parsed) && (parsed.error === undefined || Array.isArray(parsed.items));
    const answered = options.answers?.includes(response.status) && carries;
    if (!response.ok && !answered) throw refusal(response, parsed, now);
    if (isObject(parsed) && Array.isArray(parsed.warnings)) {
      for (const warning of parsed.warnings) if (typeof warning === 'string') onWarning(warning);
    }
    if (parsed !== undefined || text === '') return named(parsed);
    throw new UnavailableError(`The answer to ${method} ${path} is not JSON.`, {
      status: response.status,
      code: 'invalid_response',
      requestId: requestIdOf(response),
      retryable: true,
      outcomeUnknown: true,
    });
  };
}

/** Opens streams; `timeoutMs` is for their beginning. */
export function createOpen(endpoint: Endpoint, { key, timeoutMs, signal, now }: SendSettings): Open {
  const { base, call } = connect(endpoint);
  return async (path, headers, stop) => {
    if (signal?.aborted) throw aborted(signal, false);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), timeoutMs);
    const signals = [stop, late.signal, ...(signal ? [signal] : [])];
    const sent = { Accept: 'text/event-stream', ...headers, ...authorization(key) };
    try {
      const init: RequestOptions = {
        method: 'GET',
        headers: sent,
        signal: AbortSignal.any(signals),
        redirect: 'manual',
      };
      const response = await call(`${base}/ojs/v1${path}`, init);
      refuseRedirect(response, base);
      if (response.status === 204) return undefined;
      if (!response.ok || !response.body) throw refusal(response, parseJson(await response.text()), now);
      return response.body;
    } catch (cause) {
      if (signal?.aborted) throw aborted(signal, false);
      if (isA(cause, TocsinError)) throw cause;
      throw noAnswer('GET', path, cause);
    } finally {
      clearTimeout(timer);
    }
  };
}

const noAnswer = (method: string, path: string, cause: unknown): UnavailableError =>
  unanswered(`No answer to ${method} ${path}: ${messageOf(cause)}`, true, cause);

export const authorization = (key: string | undefined): { Authorization?: string } =>
  key === undefined ? {} : { Authorization: `Bearer ${key}` };

/** For requests without the client's own code; undefined where they do not go over the network. */
export function addressOf(endpoint: Endpoint, key: string | undefined): Address | undefined {
  if (endpoint.service || endpoint.fetch) return undefined;
  return { base: connect(endpoint).base, headers: authorization(key) };
}

/** Where requests go, and what makes them. @throws {TypeError} */
export function connect(endpoint: Endpoint): { base: string; call: ServiceLike['fetch'] } {
  if (endpoint.service) {
    const { service } = endpoint;
    return { base: BINDING_ORIGIN, call: (input, init) => service.fetch(input, init) };
  }
  if (typeof endpoint.url !== 'string' || !URL.canParse(endpoint.url)) {
    throw new TypeError('TocsinClient: give it a service binding, or the url of the queue');
  }
  const custom = endpoint.fetch;
  const { username, password } = new URL(endpoint.url);
  // `fetch` refuses it, too, and repeats the password in its error.
  if (!custom && (username !== '' || password !== '')) {
    throw new TypeError('TocsinClient: the url must have no user name and no password; the key of the queue is `key`');
  }
  return {
    base: endpoint.url.replace(/(\/ojs\/(v1|ui))?\/*$/, ''),
    call: custom ? (input, init) => custom(input, init) : (input, init) => fetch(input, init),
  };
}

/** Redirects are not followed: they would turn a write into a read, or lose the key. @throws {TocsinError} */
function refuseRedirect(response: Response, base: string): void {
  const isRedirect =
    (response.type as string) === 'opaqueredirect' || [301, 302, 303, 307, 308].includes(response.status);
  if (!isRedirect) return;
  const location = response.headers.get('Location') ?? '';
  const target = URL.canParse(location, base) ? new URL(location, base) : undefined;
  const [address] = target ? `${target.origin}${target.pathname}`.split('/ojs/') : [];
  throw new TocsinError(`${base} redirects to ${address ?? 'another address'}: use that as the address of the queue.`, {
    status: response.status,
    code: 'redirected',
    requestId: requestIdOf(response),
    retryable: false,
  });
}

/** The error for an answer outside 2xx. A 5xx without `Retry-After`, or a cut-off one, may come after the write. */
function refusal(response: Response, body: unknown, now: () => number): TocsinError {
  const error = isObject(body) && isObject(body.error) ? body.error : {};
  const { status } = response;
  const retryAfterMs = retryAfter(response.headers.get('Retry-After'), now);
  const message = stringOf(error.message) ?? `The queue answered ${status}.`;
  return errorFor(message, {
    status,
    code: stringOf(error.code) ?? `http_${status}`,
    requestId: requestIdOf(response) ?? stringOf(error.request_id),
    retryable: typeof error.retryable === 'boolean' ? error.retryable : status === 429 || status >= 500,
    details: isObject(error.details) ? (named(error.details) as Record<string, unknown>) : undefined,
    hint: stringOf(error.hint),
    retryAfterMs,
    outcomeUnknown:
      status >= 500 && error.retryable !== false && !(status === 503 && retryAfterMs !== undefined && !isCutOff(error)),
  });
}

/** Reasons of a 503 after which the queue may have done what it was asked for. */
const CUT_OFF: readonly unknown[] = ['reset', 'connection_lost'];

const isCutOff = ({ details }: Record<string, unknown>): boolean =>
  isObject(details) && CUT_OFF.includes(details.reason);

/** `Retry-After` in ms: seconds, possibly fractional, or an HTTP date. */
function retryAfter(value: string | null, now: () => number): number | undefined {
  if (value === null || value.trim() === '') return undefined;
  const seconds = Number(value);
  const ms = Number.isNaN(seconds) ? Date.parse(value) - now() : seconds * 1000;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

const requestIdOf = (response: Response): string | undefined => response.headers.get('X-Request-ID') ?? undefined;

const stringOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
