/** The queue that a command talks to: `--url`, `--key`, or `TOCSIN_URL`, `TOCSIN_KEY`. */
import { TocsinClient } from '../client/client';
import { createRequests, type Requests } from '../client/requests';
import { createSend } from '../client/transport';
import { type Endpoint, usageError } from './failure';
import { notice, type Terminal } from './output';

export const DEFAULT_URL = 'http://localhost:8787';

export interface ConnectionOptions {
  url?: string;
  key?: string;
  json?: boolean;
}

/** Address and key, from the options or the environment. */
export function endpointOf(options: ConnectionOptions, env: Terminal['env']): Endpoint {
  const url = options.url ?? (env.TOCSIN_URL || DEFAULT_URL);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    const hint = 'Write it like https://queue.example.com or http://localhost:8787.';
    throw usageError(`${withoutPassword(url)} is not an address.`, hint);
  }
  const { username, password } = new URL(url);
  if (username !== '' || password !== '') {
    const message = `${withoutPassword(url)} contains a user name or a password, which requests cannot carry.`;
    throw usageError(message, 'Remove it, and pass the API key with --key or TOCSIN_KEY.');
  }
  return { url, key: options.key ?? (env.TOCSIN_KEY || undefined) };
}

/** An address as it may be printed, whatever is wrong with it: what stands before an @ is secret. */
export const withoutPassword = (url: string): string => url.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1…@');

/** Repetitions of a failed request, where it may be repeated, after short pauses: a human waits. */
const RETRY = { attempts: 3, baseMs: 100, maxMs: 2_000 } as const;
const TIMEOUT_MS = 30_000;

/** Warnings of the server: among the JSON, or beside what is printed. */
export function warner(options: ConnectionOptions, terminal: Terminal): (warning: string) => void {
  return (warning) => {
    if (options.json) terminal.warnings.push(warning);
    else notice(terminal, `warning: ${warning}`);
  };
}

/** A client that gives up soon. */
export function connect(options: ConnectionOptions, terminal: Terminal): TocsinClient {
  const endpoint = endpointOf(options, terminal.env);
  return new TocsinClient({ ...endpoint, answers: 'full', retry: RETRY, onWarning: warner(options, terminal) });
}

/** Requests as they are, for what the client has no method for. */
export function requestsTo(
  endpoint: Endpoint,
  { signal, onWarning }: { signal?: AbortSignal; onWarning: (warning: string) => void },
): Requests {
  const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
  const settings = { key: endpoint.key, timeoutMs: TIMEOUT_MS, signal, now: Date.now, onWarning };
  const retrier = { ...RETRY, random: Math.random, signal, sleep };
  return createRequests(createSend({ url: endpoint.url }, settings), retrier, TIMEOUT_MS, Date.now);
}
