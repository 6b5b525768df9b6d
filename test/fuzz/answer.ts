/** What every answer must be, whatever was asked. */
import { differenceOf } from '../support/described';
import type { FuzzRequest } from './request';
import type { Seen } from './values';

/** Longest message of an error: it may quote the request, but not whole. */
const MAX_MESSAGE = 1000;
const MAX_ERROR = 16_384;

/** Plain JSON, for programs that know nothing of the protocol. */
const DOCUMENT = '/ojs/v1/openapi.json';

/** What is wrong with an answer; undefined when nothing is. */
export function faultOf(response: Response, text: string, { method, path }: FuzzRequest): string | undefined {
  const { status, headers } = response;
  if (status >= 500 && status !== 503) return `status ${status}`;
  if (!/^[\x21-\x7e]{1,128}$/.test(headers.get('X-Request-ID') ?? '')) return 'no request id';
  if (headers.get('OJS-Version') !== '1.0') return 'no version';
  const isRpc = /^(?:\/ojs)?\/mcp\b/.test(path);
  if (status === 204 || method === 'HEAD' || (isRpc && status === 202)) {
    return text === '' ? undefined : 'a body where there must be none';
  }
  if (isStream(response)) return status === 200 ? undefined : 'a stream that is none';
  if (isMetrics(response)) return metricsFault(status, text);
  if (isPage(response) || (status === 200 && path.startsWith(DOCUMENT))) return undefined;
  if (headers.get('Content-Type') !== 'application/openjobspec+json') return `type ${headers.get('Content-Type')}`;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return 'no JSON';
  }
  // A probe that finds something ill says what, and is no error.
  const { status: health, healthy } = body as { status?: unknown; healthy?: unknown };
  const isProbe = status === 503 && (health === 'unhealthy' || healthy === false);
  // Errors of JSON-RPC have numbers.
  const isRpcError = isRpc && Object.hasOwn(body as object, 'jsonrpc');
  const fault = status >= 400 && !isProbe && !isRpcError ? errorFault(body) : undefined;
  return fault ?? differenceOf(method, new URL(path, 'http://localhost').pathname, status, text);
}

/** Is this an answer that goes on until somebody leaves? */
export const isStream = ({ headers }: Response): boolean => headers.get('Content-Type') === 'text/event-stream';

/** Is this the text of Prometheus? */
const isMetrics = ({ headers }: Response): boolean => headers.get('Content-Type') === 'text/plain';

/** Is this a part of the dashboard, or a queue as a file? */
const isPage = ({ headers }: Response): boolean =>
  /^(?:text\/(?:html|css|javascript)|image\/|application\/x-ndjson)/.test(headers.get('Content-Type') ?? '');

/** Is there nothing to be learned from this answer? */
export const isNoJson = (response: Response): boolean => isMetrics(response) || isPage(response);

/** A line of metrics: a comment, or a name, labels whose values are escaped, and a number. */
const METRIC =
  /^(?:# (?:HELP|TYPE) [a-z_]+ .+|[a-z_]+(?:\{[a-z]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z]+="(?:[^"\\\n]|\\[\\"n])*")*\})? [\d.e+-]+)$/;

function metricsFault(status: number, text: string): string | undefined {
  if (status !== 200) return `metrics with status ${status}`;
  const wrong = text
    .split('\n')
    .slice(0, -1)
    .find((line) => !METRIC.test(line));
  return wrong === undefined ? undefined : `a line that is no metric: ${wrong}`;
}

function errorFault(body: unknown): string | undefined {
  const { error } = body as { error?: Record<string, unknown> };
  if (typeof error !== 'object' || error === null) return 'no error in the answer';
  for (const name of ['code', 'type', 'message', 'request_id', 'hint', 'docs_url']) {
    if (typeof error[name] !== 'string' || error[name] === '') return `the error has no ${name}`;
  }
  if (typeof error.retryable !== 'boolean') return 'the error does not say whether to retry';
  const { message } = error as { message: string };
  if (message.length > MAX_MESSAGE) return `a message of ${message.length} characters`;
  if (!message.isWellFormed()) return 'a message cut inside a character';
  const size = JSON.stringify(error).length;
  return size > MAX_ERROR ? `an error of ${size} characters` : undefined;
}

/** What the members of answers name, for later requests. */
const KINDS: Readonly<Record<string, string>> = {
  id: 'id',
  job_id: 'job',
  workflow_id: 'workflow',
  worker_id: 'worker',
  operation_id: 'operation',
  next_cursor: 'cursor',
  cursor: 'event',
  key: 'key',
};

/** Remembers ids and cursors that an answer names. */
export function harvest(path: string, body: unknown, seen: Seen, depth = 0): void {
  if (typeof body !== 'object' || body === null || depth > 5) return;
  if (JSON.stringify(body).includes('canary') && !Array.isArray(body) && depth > 0) return;
  for (const [name, value] of Object.entries(body).slice(0, 50)) {
    if (typeof value !== 'string') harvest(path, value, seen, depth + 1);
    else {
      const kind = KINDS[name];
      if (kind === undefined || value.length > 2000) continue;
      seen.note(kind, value);
      if (name === 'id' && /workflow/.test(path)) seen.note('workflow', value);
      else if (name === 'id' && /\/jobs|workers\/fetch/.test(path)) seen.note('job', value);
    }
  }
}
