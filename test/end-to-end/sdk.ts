import { server } from '../support/server';
/**
 * A client and a worker that talk like the OJS SDK for JavaScript: its paths (with the prefix it sets twice), bodies and
 * headers, and what it expects of answers: JSON in every 2xx but 204, `error.code` in everything else.
 */

export type Json = Record<string, unknown>;

export class SdkError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly retryable: boolean,
    message: string,
  ) {
    super(message);
  }
}

/** What the SDK's transport does with every request. */
async function request<T = Json>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await server.send(
    new Request(`http://localhost/ojs/v1${path}`, {
      method,
      headers: {
        'Content-Type': 'application/openjobspec+json',
        Accept: 'application/openjobspec+json',
        'OJS-Version': '1.0.0-rc.1',
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
  );
  if (response.status === 204) return {} as T;
  const answer = (await response.json()) as { error?: { code: string; retryable: boolean; message: string } };
  if (response.ok) return answer as T;
  const { code = 'none', retryable = false, message = '' } = answer.error ?? {};
  throw new SdkError(response.status, code, retryable, message);
}

export const client = {
  enqueue: async (type: string, args: unknown[], options?: Json) =>
    (await request<{ job: Json }>('POST', '/jobs', { type, args, ...(options && { options }) })).job,
  enqueueBatch: async (jobs: { type: string; args: unknown[]; options?: Json }[]) =>
    (await request<{ jobs: Json[] }>('POST', '/jobs/batch', { jobs })).jobs,
  getJob: async (id: string) => (await request<{ job: Json }>('GET', `/jobs/${encodeURIComponent(id)}`)).job,
  cancelJob: async (id: string) => (await request<{ job: Json }>('DELETE', `/jobs/${encodeURIComponent(id)}`)).job,
  queues: async () => (await request<{ queues: Json[] }>('GET', '/queues')).queues,
  queueStats: (name: string) => request('GET', `/queues/${name}/stats`),
  pause: (name: string) => request('POST', `/queues/${name}/pause`),
  resume: (name: string) => request('POST', `/queues/${name}/resume`),
  listDeadLetter: async () => (await request<{ jobs: Json[] }>('GET', '/dead-letter')).jobs,
  retryDeadLetter: (id: string) => request('POST', `/dead-letter/${id}/retry`),
  discardDeadLetter: (id: string) => request('DELETE', `/dead-letter/${id}`),
  health: () => request('GET', '/health'),
};

/** An event as the SDK hands it to its user. */
export interface SdkEvent {
  id: string;
  type: string;
  data: Json;
}

/**
 * Listens to a channel as the SDK does: without coming back, line by line, an event at each empty line.
 * @returns ends it
 */
function subscribe(channel: string, handler: (event: SdkEvent) => void): () => void {
  const stop = new AbortController();
  const url = `http://localhost/ojs/v1/events/stream?channel=${encodeURIComponent(channel)}`;
  const headers = { Accept: 'text/event-stream', 'Cache-Control': 'no-cache' };
  const listen = async () => {
    const response = await server.send(new Request(url, { headers }));
    if (!response.ok) throw new SdkError(response.status, 'none', false, '');
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    stop.signal.addEventListener('abort', () => void reader.cancel());
    const decoder = new TextDecoder();
    let rest = '';
    let event = { id: '', type: '', data: '' };
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '') {
          if (event.data) handler({ ...event, type: event.type || 'message', data: JSON.parse(event.data) as Json });
          event = { id: '', type: '', data: '' };
        } else if (line.startsWith('event:')) event.type = line.slice(6).trimStart();
        else if (line.startsWith('id:')) event.id = line.slice(3).trimStart();
        else if (line.startsWith('data:')) event.data += line.slice(5).trimStart();
      }
    }
  };
  listen().catch(() => undefined);
  return () => stop.abort();
}

export const subscribeJob = (id: string, handler: (event: SdkEvent) => void) => subscribe(`job:${id}`, handler);
export const subscribeQueue = (queue: string, handler: (event: SdkEvent) => void) =>
  subscribe(`queue:${queue}`, handler);

/** Reports progress, 0 … 100. */
export const reportProgress = (job_id: string, percentage: number, message?: string, data?: Json) =>
  request('POST', '/workers/progress', { job_id, percentage, ...(message && { message }), ...(data && { data }) });

/** What a durable handler is given: results of steps that are not run again in the next attempt. */
export class Durable {
  private constructor(
    private readonly jobId: string,
    private readonly attempt: number,
    private readonly log: { key: string; result: unknown }[],
    private replayed = 0,
  ) {}

  static async create(jobId: string, attempt: number): Promise<Durable> {
    const resume = await request<{ has_checkpoint: boolean; checkpoint?: { metadata?: Record<string, string> } }>(
      'GET',
      `/ojs/v1/checkpoints/${jobId}/resume`,
    );
    const log = resume.has_checkpoint ? resume.checkpoint?.metadata?._replay_log : undefined;
    return new Durable(jobId, attempt, log === undefined ? [] : JSON.parse(log));
  }

  async sideEffect<T>(key: string, run: () => Promise<T>): Promise<T> {
    const entry = this.log[this.replayed++];
    if (entry?.key === key) return entry.result as T;
    const result = await run();
    this.log.push({ key, result });
    return result;
  }

  checkpoint(step_index: number, state: unknown): Promise<Json> {
    const metadata = { _replay_log: JSON.stringify(this.log), attempt: String(this.attempt) };
    return request('POST', `/ojs/v1/checkpoints/${this.jobId}`, { state, step_index, metadata });
  }

  complete(): Promise<Json> {
    return request('DELETE', `/ojs/v1/checkpoints/${this.jobId}`);
  }
}

export type Handler = (job: Json) => Promise<unknown>;

/** The SDK's worker, a round of its loops at a time. It names itself when it fetches, but not in its reports. */
export class SdkWorker {
  readonly id = `worker_${crypto.randomUUID()}`;
  state: 'running' | 'quiet' | 'terminate' = 'running';
  private readonly active = new Set<string>();

  constructor(
    private readonly queues: string[],
    private readonly handlers: Record<string, Handler>,
  ) {}

  /** Fetches and runs what there is. @returns how many jobs it got */
  async poll(): Promise<number> {
    if (this.state !== 'running') return 0;
    const { jobs } = await request<{ jobs: Json[] }>('POST', '/workers/fetch', {
      queues: this.queues,
      count: 10,
      worker_id: this.id,
      visibility_timeout_ms: 30_000,
    });
    await Promise.all(jobs.map((job) => this.run(job)));
    return jobs.length;
  }

  /** Polls until there is nothing to do. */
  async drain(): Promise<void> {
    while ((await this.poll()) > 0);
  }

  async heartbeat(): Promise<Json> {
    const ids = [...this.active];
    const answer = await request('POST', '/workers/heartbeat', {
      worker_id: this.id,
      state: this.state,
      active_jobs: ids.length,
      active_job_ids: ids,
      hostname: 'unknown',
      pid: 0,
      queues: this.queues,
      concurrency: 10,
      labels: [],
    });
    if (answer.state === 'quiet' && this.state === 'running') this.state = 'quiet';
    if (answer.state === 'terminate') this.state = 'terminate';
    return answer;
  }

  private async run(job: Json): Promise<void> {
    const job_id = job.id as string;
    const handler = this.handlers[job.type as string];
    this.active.add(job_id);
    try {
      if (!handler) {
        const message = `No handler registered for job type '${job.type}'.`;
        await request('POST', '/workers/nack', {
          job_id,
          error: { code: 'handler_not_found', message, retryable: false },
        });
        return;
      }
      const result = await handler(job);
      await request('POST', '/workers/ack', { job_id, ...(result !== undefined && { result }) });
    } catch (error) {
      if (error instanceof SdkError) return;
      const { message, stack } = error as Error;
      const report = { code: 'handler_error', message, retryable: true, details: { stack } };
      await request('POST', '/workers/nack', { job_id, error: report });
    } finally {
      this.active.delete(job_id);
    }
  }
}
