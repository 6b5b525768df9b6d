/** A worker that runs by itself on a queue that answers from a script. Timers are the test's own. */
import { afterEach, beforeEach, vi } from 'vitest';
import type { ClientOptions, RunOptions, WorkerOptions } from '../../src/client';
import { fakeQueue, type SentRequest } from './fake-queue';

/** Answers by the end of the path. */
export type Answers = Partial<Record<string, (request: SentRequest) => unknown>>;

export const never = (): Promise<never> => new Promise(() => undefined);

/** A job as a fetch answers it. */
export function job(id: string, change: Record<string, unknown> = {}): Record<string, unknown> {
  return { id, type: 'a.b', args: [], meta: {}, attempt: 1, queue: 'q', ...change };
}

/** An empty answer once the wait is over, as of a queue without work; cut off when the client gives the fetch up. */
export function nothing({ body, signal }: SentRequest): Promise<Response> {
  return new Promise((resolve, reject) => {
    setTimeout(() => resolve(Response.json({ jobs: [] })), Number(body?.wait_ms));
    signal?.addEventListener('abort', () => reject(new Error('cut off')), { once: true });
  });
}

/** Answers the fetches with these jobs in turn, then as a queue without work. */
export function jobsInTurn(...batches: unknown[][]): (request: SentRequest) => unknown {
  return (request) => (batches.length > 0 ? { jobs: batches.shift() } : nothing(request));
}

type ReportBody = Record<string, unknown> & { action: string };

/** A worker on a queue that answers as told; requests are named by the end of their path. */
export function startWorker(
  signal: AbortSignal,
  answers: Answers,
  handlers: object = { 'a.b': never },
  options: Partial<RunOptions> = {},
  about: Partial<WorkerOptions> = {},
) {
  const said: [string, SentRequest['body']][] = [];
  const asked: typeof said = [];
  /** Each report among several is one of its own to the test. */
  const outcomes = async (request: SentRequest, reports: readonly ReportBody[]) => {
    const items = await Promise.all(
      reports.map(async ({ action, ...entry }, index) => {
        const body: Record<string, unknown> = { ...entry, worker_id: entry.worker_id ?? request.body?.worker_id };
        said.push([action, body]);
        const answer = await answers[action]?.({ ...request, body });
        if (!(answer instanceof Response) || answer.ok) return { index, job_id: body.job_id, status: 'done' };
        const { error } = (await answer.json()) as { error: object };
        return { index, job_id: body.job_id, status: 'failed', error: { ...error, status: answer.status } };
      }),
    );
    return { items };
  };
  const script = async (request: SentRequest): Promise<Response> => {
    const name = request.path.split('/').at(-1) ?? '';
    const { reports, ...rest } = (request.body ?? {}) as { reports?: ReportBody[] };
    asked.push([name, request.body]);
    if (name === 'report') {
      const refusal = answers.report?.(request);
      return refusal instanceof Response ? refusal : Response.json(await outcomes(request, reports ?? []));
    }
    said.push([name, rest]);
    // One of an earlier release overlooks them.
    if (reports && answers.report) return Response.json({ jobs: [] });
    if (reports) {
      const told = await outcomes(request, reports);
      const fetched = (await Promise.race([answers[name]?.(request), undefined])) ?? { jobs: [] };
      return fetched instanceof Response ? fetched : Response.json({ ...(fetched as object), reports: told });
    }
    const answer = await answers[name]?.(request);
    if (answer instanceof Response) return answer;
    if (name === 'fetch') return answer === undefined ? await nothing(request) : Response.json(answer);
    const known =
      name === 'heartbeat' ? { state: 'running', jobs_extended: request.body?.active_jobs } : { job: { id: '' } };
    return Response.json({ ...known, ...(answer as object) });
  };
  const { client } = fakeQueue(script, { retry: false, timeoutMs: 60_000 } as ClientOptions);
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const worker = client.worker('w', { queues: ['q'], ...about });
  const settings = { signal, onError, log: () => undefined, ...options };
  const running = worker.run(handlers as never, settings);
  let ended = false;
  const end = (): void => {
    ended = true;
  };
  running.then(end, end);
  /** The bodies of requests of a name. */
  const sent = (name: string) => said.filter(([other]) => other === name).map(([, body]) => body);
  /** The same as they were sent: reports that travel together are in one. */
  const requests = (name: string) => asked.filter(([other]) => other === name).map(([, body]) => body);
  return { worker, running, errors, said, sent, requests, ended: () => ended };
}

/** Ends the worker of a test: a new one for each test of the file, all under fake timers. */
export function stopOfEach(): Pick<AbortController, 'signal' | 'abort'> {
  let stop = new AbortController();
  beforeEach(() => {
    stop = new AbortController();
    vi.useFakeTimers();
  });
  afterEach(() => {
    stop.abort();
    vi.useRealTimers();
  });
  return {
    get signal() {
      return stop.signal;
    },
    abort: () => stop.abort(),
  };
}
