/** The queue that a command talks to: `--url`, `--key`, or `TOCSIN_URL`, `TOCSIN_KEY`. */
import { TocsinClient } from '../client/client';
import { usageError } from './failure';
import { printable, type Terminal } from './output';

/** Where `tocsin dev` serves. */
export const DEFAULT_URL = 'http://localhost:8787';

/** The options that every command over HTTP takes. */
export interface ConnectionOptions {
  url?: string;
  key?: string;
  json?: boolean;
}

/** Where a queue is, and the key. */
export interface Endpoint {
  url: string;
  key: string | undefined;
}

/** Address and key, from the options or the environment. */
export function endpointOf(options: ConnectionOptions, env: Terminal['env']): Endpoint {
  const url = options.url ?? (env.TOCSIN_URL || DEFAULT_URL);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    const shown = withoutPassword(url);
    throw usageError(
      `${shown} is not an address.`,
      'Write it like https://queue.example.com or http://localhost:8787.',
    );
  }
  const { username, password } = new URL(url);
  if (username !== '' || password !== '') {
    const message = `${withoutPassword(url)} has a user name or a password in it, which no request can carry.`;
    throw usageError(message, 'Leave it out, and give the key of the queue with --key or TOCSIN_KEY.');
  }
  return { url, key: options.key ?? (env.TOCSIN_KEY || undefined) };
}

/** An address as it may be printed, whatever is wrong with it: what stands before an @ is nobody's business. */
export function withoutPassword(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1…@');
}

/** A client that gives up soon: a human waits. */
export function connect(options: ConnectionOptions, terminal: Terminal): TocsinClient {
  const onWarning = (warning: string) => {
    if (options.json) terminal.warnings.push(warning);
    else terminal.err(printable(`warning: ${warning}\n`));
  };
  const endpoint = endpointOf(options, terminal.env);
  return new TocsinClient({ ...endpoint, answers: 'full', retry: { attempts: 3, maxMs: 2000 }, onWarning });
}
