/** The one HTTP client of the tests: the public surface, and what every answer must have. Nothing here looks inside an object. */
import { env, exports } from 'cloudflare:workers';
import { beforeEach, expect } from 'vitest';
import type { Env } from '../../src/config';
import { createApp } from '../../src/http/app';
import { until } from './clock';
import { differenceOf } from './described';

/** Where the API begins. */
export const V1 = '/ojs/v1';

/** A well-formed job id that no queue has. */
export const UNKNOWN_ID = '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee';

/** A parsed answer. The body of one without content is `{}`. */
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
export interface ErrorBody extends Json {
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

/** Tocsin behind HTTP. Methods other than `call` and `refusal` fail the test when they are refused. */
export class TestServer {
  /** @param send the Worker as it is deployed, unless told otherwise */
  constructor(readonly send: Fetch = (request) => worker.fetch(request)) {}

  /** The same application with other variables and bindings. */
  static with(variables: Record<string, unknown>): TestServer {
    const other = { ...env, ...variables } as unknown as Env;
    const app = createApp();
    return new TestServer((request) => app.fetch(request, other));
  }

  /**
   * Sends `body` as JSON, or as it is when it is text or bytes.
   * @param path on http://localhost, or a whole URL
   */
  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const raw = typeof body === 'string' || body instanceof Uint8Array;
    const request = new Request(new URL(path, 'http://localhost'), {
      method,
      ...(body !== undefined && { body: raw ? (body as BodyInit) : JSON.stringify(body) }),
      headers: { ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
    });
    const response = await this.send(request);
    const text = await response.text();
    expect(response.headers.get('OJS-Version')).toBe('1.0');
    expect(response.headers.get('X-Request-ID')).toMatch(/^[\x21-\x7e]{1,128}$/);
    if (response.status === 204 || method === 'HEAD') {
      expect(text).toBe('');
      return { status: response.status, headers: response.headers, body: {} };
    }
    expect(response.headers.get('Content-Type')).toBe('application/openjobspec+json');
    expect(differenceOf(method, new URL(request.url).pathname, response.status, text)).toBeUndefined();
    return { status: response.status, headers: response.headers, body: JSON.parse(text) };
  }

  /** A call that must be answered with `status`; its body. */
  async ok(
    status: number,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Body> {
    const answer = await this.call(method, path, body, headers);
    expect(answer, JSON.stringify(answer.body)).toMatchObject({ status });
    return answer.body;
  }

  /** Status, code and, where one is named, the field of a call that is refused. */
  async refusal(method: string, path: string, body?: unknown): Promise<Json> {
    const answer = await this.call(method, path, body);
    const field = answer.body.error?.details?.field;
    return { status: answer.status, code: answer.body.error?.code, ...(field !== undefined && { field }) };
  }

  /** Every test of the file starts with an empty server. */
  emptyBeforeEach(): void {
    beforeEach(() => this.reset());
  }

  async reset(): Promise<void> {
    await this.ok(200, 'POST', `${V1}/admin/reset`);
  }

  /** Changes the mode of a queue, which is created if it does not exist. */
  async setMode(queue: string, verb: 'pause' | 'resume' | 'drain'): Promise<Body> {
    await this.call('POST', `${V1}/queues`, { name: queue });
    return await this.ok(200, 'POST', `${V1}/queues/${queue}/${verb}`);
  }

  /** Enqueues a job of no particular type and gives its id. */
  enqueue(queue: string, change: Json = {}): Promise<string> {
    const { type = 'test.echo', args = [], options, ...rest } = change;
    return this.add(type as string, args as unknown[], { queue, ...(options as Json | undefined) }, rest);
  }

  /** Enqueues a job of a type and gives its id. `rest` are further members of the request. */
  async add(type: string, args: unknown[], options: Json = {}, rest: Json = {}): Promise<string> {
    const body = await this.ok(201, 'POST', `${V1}/jobs`, { type, args, options, ...rest });
    return body.job?.id as string;
  }

  /** Enqueues several jobs with one request; their ids in order. */
  async addAll(jobs: { type: string; args: unknown[]; options?: Json }[]): Promise<string[]> {
    const body = await this.ok(201, 'POST', `${V1}/jobs/batch`, { jobs });
    return (body.jobs as Json[]).map(({ id }) => id as string);
  }

  /** The envelope of a job. */
  async job(id: unknown): Promise<Json> {
    return (await this.ok(200, 'GET', `${V1}/jobs/${id}`)).job as Json;
  }

  /** The state of a job; `none` when there is no such job. */
  async state(id: string): Promise<unknown> {
    return (await this.call('GET', `${V1}/jobs/${id}`)).body.job?.state ?? 'none';
  }

  /** Up to 200 jobs of a queue, oldest first. */
  async jobs(queue: string): Promise<Json[]> {
    return [...((await this.ok(200, 'GET', `${V1}/jobs?queue=${queue}&limit=200`)).jobs as Json[])].reverse();
  }

  /** Waits until the job is in one of these states; its envelope then. */
  jobIn(id: string, states: string | string[], deadlineMs?: number): Promise<Json> {
    let last: Json = {};
    return until(
      async () => {
        last = await this.job(id);
        return [states].flat().includes(last.state as string) && last;
      },
      () => `job ${id} to be ${[states].flat().join(' or ')}; it is ${JSON.stringify(last)}`,
      deadlineMs,
    );
  }

  /** Claims jobs as a worker. */
  async take(queues: string | string[], change: Json = {}): Promise<Json[]> {
    return (await this.ok(200, 'POST', `${V1}/workers/fetch`, { queues: [queues].flat(), ...change })).jobs as Json[];
  }

  /** Claims jobs as a worker; their ids. */
  async takeIds(queues: string | string[], change: Json = {}): Promise<string[]> {
    return (await this.take(queues, change)).map(({ id }) => id as string);
  }

  /** Claims the one job that must be there. */
  async takeOne(queue: string, change: Json = {}): Promise<Json> {
    const jobs = await this.take(queue, change);
    expect(jobs, `jobs of ${queue}`).toHaveLength(1);
    return jobs[0] as Json;
  }

  /** Reports a job completed. */
  ack(id: unknown, change: Json = {}): Promise<Body> {
    return this.ok(200, 'POST', `${V1}/workers/ack`, { job_id: id, ...change });
  }

  /** Reports an attempt failed. */
  nack(id: unknown, change: Json = {}): Promise<Body> {
    const error = { code: 'failed', message: 'failed' };
    return this.ok(200, 'POST', `${V1}/workers/nack`, { job_id: id, error, ...change });
  }

  /** Reports an attempt failed whose job is due again at once. */
  failNow(id: unknown, change: Json = {}): Promise<Body> {
    return this.nack(id, { error: { code: 'E', message: 'm', retry_in: 0 }, ...change });
  }

  /** Runs the next job of a queue to its end. */
  async complete(queue: string): Promise<void> {
    await this.ack((await this.takeOne(queue)).id);
  }

  heartbeat(worker: string, change: Json = {}): Promise<Body> {
    return this.ok(200, 'POST', `${V1}/workers/heartbeat`, { worker_id: worker, ...change });
  }

  /** Up to 200 events, oldest first. */
  async events(of: { queue?: string; types?: string }): Promise<Json[]> {
    return (await this.ok(200, 'GET', `${V1}/events?${new URLSearchParams({ ...of, limit: '200' })}`)).events as Json[];
  }

  /** Counts of a queue by state. */
  async counts(queue: string): Promise<Record<string, number>> {
    return (await this.ok(200, 'GET', `${V1}/queues/${queue}/stats`)).stats as Record<string, number>;
  }

  /** The names of the first queues. */
  async queues(): Promise<unknown[]> {
    return ((await this.ok(200, 'GET', `${V1}/queues`)).queues as Json[]).map(({ name }) => name);
  }

  /** Changes the settings of a queue; what they are then. */
  configure(queue: string, config: Json): Promise<Body> {
    return this.ok(200, 'PUT', `${V1}/queues/${queue}/config`, config);
  }
}

/** The Worker as it is deployed. */
export const server = new TestServer();
