/** A queue that answers from a script, and a client that talks to it without waiting. */

import type { ClientOptions, RequestOptions } from '../../src/client';
import { TocsinClient } from '../../src/client';

export interface SentRequest {
  method: string;
  /** Path below `/ojs/v1`. */
  path: string;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: Record<string, unknown> | undefined;
  signal: AbortSignal | undefined;
}

/** Answers a request; may throw to cut the connection, or answer nothing in particular to have the job accepted. */
export type Script = (request: SentRequest, index: number) => Response | Promise<Response> | undefined;

export interface FakeQueue {
  client: TocsinClient;
  requests: SentRequest[];
  /** The waits between tries, in ms. */
  waits: number[];
}

type Wire = { id?: string; type: string; options?: Record<string, unknown> };

export function envelope(job: Wire, number: number): Record<string, unknown> {
  return { id: job.id ?? `id-${number}`, type: job.type, state: 'available' };
}

export function errorAnswer(
  status: number,
  code: string,
  details: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Response {
  const body = { error: { code, message: `${code} at ${String(details.field)}`, retryable: status >= 429, details } };
  return Response.json(body, { status, headers: { 'X-Request-ID': 'req_1', ...headers } });
}

export function fakeQueue(script: Script = () => undefined, options: Partial<ClientOptions> = {}): FakeQueue {
  const requests: SentRequest[] = [];
  const waits: number[] = [];
  const service = {
    async fetch(input: string, init: Partial<RequestOptions> = {}) {
      const { pathname, searchParams: query } = new URL(input);
      const path = pathname.replace('/ojs/v1', '');
      const body = init.body === undefined ? undefined : JSON.parse(init.body);
      const { method = 'GET', headers = {}, signal } = init;
      const request = { method, path, query, headers, body, signal };
      requests.push(request);
      return script(request, requests.length - 1) ?? accept(request);
    },
  };
  const base = {
    random: () => 0.5,
    sleep: async (ms: number) => void waits.push(ms),
    ...options,
  };
  return { client: new TocsinClient({ ...base, service } as ClientOptions), requests, waits };
}

/** The entries of a batch. */
export function jobsOf(body: SentRequest['body']): Wire[] {
  return Array.isArray(body?.jobs) ? body.jobs : [];
}

function accept({ method, path, body }: SentRequest): Response {
  if (path === '/jobs/batch') {
    const jobs = jobsOf(body).map(envelope);
    return Response.json({ jobs, enqueued: jobs.length, failed: 0 }, { status: 201 });
  }
  if (path === '/jobs') return Response.json({ job: envelope(body as unknown as Wire, 0) }, { status: 201 });
  const id = path.split('/')[2] ?? '';
  return Response.json({ job: { id, type: 'a', state: method === 'DELETE' ? 'cancelled' : 'available' } });
}
