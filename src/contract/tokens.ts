/** Tokens for browsers, and URLs that send one signal. */
import type { Duration } from '../job/wire';
import type { Time } from './common';
import { DATA, get, JOB_DATA, type Media, post } from './route';

/** What a token allows: at least one of `read`, `signals` and `enqueue`. */
export interface TokenRequest {
  /** The job that may be read, or signalled. */
  job?: string;
  /** State, progress, result, error, times, events and streams of the job, but nothing that it was given. */
  read?: boolean;
  /** Names of signals that may be sent to the job, at most 10. */
  signals?: string[];
  /** One job of this type, however often the token is used. Default queue: `default`. */
  enqueue?: { type: string; queue?: string; group?: string };
  /** At most 24 hours. Default 15 minutes. */
  expires_in?: Duration;
}

export interface Token {
  token: string;
  expires_at: Time;
}

/** Which signal a URL sends. */
export interface SignalUrlRequest {
  signal: string;
  /** The person who opens the URL chooses one: at most 10, of 64 characters each. Absent: there is one button. */
  choices?: string[];
  /** The question, at most 200 characters. */
  title?: string;
  /** At most 90 days. */
  expires_in: Duration;
}

export interface SignalUrl {
  url: string;
  expires_at: Time;
}

/** The signal on record. */
export interface UrlSignal {
  job_id: string;
  signal: { name: string; at: Time };
  /** False: it had been sent before, and that signal counts. */
  first: boolean;
}

/** Below `/ojs/v1`. */
export const tokens = {
  /** Makes a token for a browser. */
  create: post<{ body: TokenRequest; 201: Token; errors: 403 | 404 }>('/tokens', {
    ...DATA,
    scope: 'key',
    bound: 'any',
  }),
  /** Makes a URL that sends a signal to a job. */
  signalUrl: post<{ body: SignalUrlRequest; 201: SignalUrl; errors: 404 }>('/jobs/:id/tokens', JOB_DATA),
};

const BY_URL = { scope: 'public', anyOrigin: true } as const;

/** Below `/ojs/v1`. */
export const signalPages = {
  /** Asks whether to send the signal of a URL. Sends nothing. */
  show: get<{ 200: Media<'text/html'>; errors: 404 | 410 | 429 }>('/signal/:token', BY_URL),
  /** Sends the signal of a URL: `{choice}` if it has choices, else any JSON. */
  send: post<{ body: unknown; 200: UrlSignal; errors: 404 | 409 | 410 | 413 | 422 | 429 }>('/signal/:token', {
    ...DATA,
    ...BY_URL,
  }),
};
