/**
 * The public surface as tests use it: requests to the deployed Worker, and waiting for something to be observed. Nothing
 * here looks inside an object.
 */
import { exports } from 'cloudflare:workers';

export type Json = Record<string, unknown>;

/** A parsed answer. A body that is no JSON object is `{}`. */
export interface ApiAnswer {
  status: number;
  body: Json;
  headers: Headers;
}

type Fetch = (request: Request) => Promise<Response>;
const worker = (exports as unknown as { default: { fetch: Fetch } }).default;

/** How long something expected may take before a test gives up, ms. */
const DEADLINE_MS = 10_000;

/** Sends `body` as JSON to `path` on http://localhost. */
export async function api(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<ApiAnswer> {
  const response = await worker.fetch(
    new Request(`http://localhost${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      headers: { ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
    }),
  );
  const text = await response.text();
  return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Json), headers: response.headers };
}

/** A call that must succeed; its body. */
export async function okApi(method: string, path: string, body?: unknown): Promise<Json> {
  const answer = await api(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path} → ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

// Taken at load: a test may set the clock of everything else, and a deadline is about real time.
const realTime = performance.now.bind(performance);
const realTimer = setTimeout;

/**
 * Asks again and again until `check` answers something other than undefined or false.
 * @param what names what was waited for, in the error when the deadline passes
 */
export async function until<T>(
  check: () => T | undefined | false | Promise<T | undefined | false>,
  what: string | (() => string),
  deadlineMs: number = DEADLINE_MS,
): Promise<T> {
  const end = realTime() + deadlineMs;
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== false) return value;
    if (realTime() > end) throw new Error(`waited ${deadlineMs} ms for ${typeof what === 'string' ? what : what()}`);
    await new Promise((resolve) => realTimer(resolve, 5));
  }
}

/** Enqueues one job and gives its id. `rest` are further members of the request. */
export async function enqueue(type: string, args: unknown[], options: Json = {}, rest: Json = {}): Promise<string> {
  const body = await okApi('POST', '/ojs/v1/jobs', { type, args, options, ...rest });
  return (body.job as Json).id as string;
}

/** Enqueues several jobs of one request; their ids in order. */
export async function enqueueAll(jobs: { type: string; args: unknown[]; options?: Json }[]): Promise<string[]> {
  const body = await okApi('POST', '/ojs/v1/jobs/batch', { jobs });
  return (body.jobs as Json[]).map(({ id }) => id as string);
}

/** The envelope of a job. */
export async function job(id: string): Promise<Json> {
  return (await okApi('GET', `/ojs/v1/jobs/${id}`)).job as Json;
}

/** Waits until the job is in one of these states; its envelope then. */
export async function jobIn(id: string, states: string | string[], deadlineMs?: number): Promise<Json> {
  let last: Json = {};
  return until(
    async () => {
      last = await job(id);
      return [states].flat().includes(last.state as string) && last;
    },
    () => `job ${id} to be ${[states].flat().join(' or ')}; it is ${JSON.stringify(last)}`,
    deadlineMs,
  );
}

/** Events of a queue, oldest first. */
export async function events(queue: string, types?: string): Promise<Json[]> {
  const filter = types === undefined ? '' : `&types=${types}`;
  return (await okApi('GET', `/ojs/v1/events?queue=${queue}&limit=200${filter}`)).events as Json[];
}

/** Counts of a queue by state. */
export async function counts(queue: string): Promise<Record<string, number>> {
  return (await okApi('GET', `/ojs/v1/queues/${queue}/stats`)).stats as Record<string, number>;
}
