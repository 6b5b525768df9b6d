/** A client for tests: sends requests to the Worker and checks what every answer must have. */
import { env, exports } from 'cloudflare:workers';
import { beforeEach, expect } from 'vitest';
import type { Env } from '../../src/config';
import { createApp } from '../../src/http/app';

export const ORIGIN = 'http://localhost';

/** A parsed answer. */
export interface Answer {
  status: number;
  headers: Headers;
  body: Body;
}
export type Json = Record<string, unknown>;
export interface Body extends Json {
  error?: ErrorBody;
  job?: Json;
  jobs?: Json[];
  pagination?: Json;
  events?: Json[];
  items?: Json[];
}
export interface ErrorBody {
  code: string;
  type: string;
  message: string;
  retryable: boolean;
  request_id: string;
  details?: Json;
  hint: string;
  docs_url: string;
}

type Fetch = (request: Request) => Response | Promise<Response>;

const worker = (exports as unknown as { default: { fetch: Fetch } }).default;

/** The Worker as it is deployed. */
export const send: Fetch = (request) => worker.fetch(request);

/** The same application with other variables. */
export function sendWith(variables: Record<string, unknown>): Fetch {
  const other = { ...env, ...variables } as unknown as Env;
  const app = createApp();
  return (request) => app.fetch(request, other);
}

export interface CallOptions {
  headers?: Record<string, string>;
  send?: Fetch;
  origin?: string;
}

/** Sends `body` as JSON, or as it is when it is text or bytes. */
export async function call(method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<Answer> {
  const raw = typeof body === 'string' || body instanceof Uint8Array;
  const request = new Request((options.origin ?? ORIGIN) + path, {
    method,
    ...(body !== undefined && { body: raw ? (body as BodyInit) : JSON.stringify(body) }),
    headers: { ...(body !== undefined && { 'Content-Type': 'application/json' }), ...options.headers },
  });
  const response = await (options.send ?? send)(request);
  const text = await response.text();
  expect(response.headers.get('OJS-Version')).toBe('1.0');
  expect(response.headers.get('X-Request-ID')).toMatch(/^[\x21-\x7e]{1,128}$/);
  if (response.status === 204 || method === 'HEAD') {
    expect(text).toBe('');
    return { status: response.status, headers: response.headers, body: {} };
  }
  expect(response.headers.get('Content-Type')).toBe('application/openjobspec+json');
  return { status: response.status, headers: response.headers, body: JSON.parse(text) };
}

/** A call that must succeed with `status`. */
export async function ok(status: number, method: string, path: string, body?: unknown, options?: CallOptions) {
  const answer = await call(method, path, body, options);
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status });
  return answer.body;
}

/** Enqueues a job and gives its id. */
export async function enqueue(queue: string, change: Json = {}): Promise<string> {
  const { options, ...rest } = change;
  const body = { type: 'test.echo', args: [], ...rest, options: { queue, ...(options as Json | undefined) } };
  const answer = await ok(201, 'POST', '/ojs/v1/jobs', body);
  return answer.job?.id as string;
}

/** A well-formed job id that no queue has. */
export const UNKNOWN_ID = '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee';

/** Every test of the file starts with an empty server. */
export function startEmpty(): void {
  beforeEach(async () => {
    await ok(200, 'POST', '/ojs/v1/admin/reset');
  });
}
