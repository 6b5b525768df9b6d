/** Delivers jobs to a handler Worker as the queue does. */
import type { HandlerWorker, LogLine } from '../../src/handler';

export interface Result {
  delivery_id?: string;
  status: 'completed' | 'failed' | 'snoozed' | 'again';
  in?: number;
  until?: number;
  signal?: string;
  steps?: Record<string, object>;
  result?: unknown;
  error?: {
    code: string;
    type?: string;
    message: string;
    classes?: string[];
    details?: unknown;
    kill?: boolean;
    retry_in?: number;
    retry_at?: string;
    retryable?: boolean;
    stack?: string;
  };
}

export interface TestJob {
  type: string;
  args?: unknown;
  id?: string;
  attempt?: number;
  timeout_ms?: number;
  retry?: unknown;
  retry_effective?: unknown;
  steps?: Record<string, object>;
  max_attempts?: number;
  meta?: object;
  started_at?: string;
}

/** Options of a Worker whose log lines are collected in `lines`. */
export function quiet(lines: LogLine[] = []): { log: (line: LogLine) => void } {
  return { log: (line) => void lines.push(line) };
}

export function post(body: unknown, headers: Record<string, string> = {}, url = 'http://handler/'): Request {
  return new Request(url, {
    method: 'POST',
    headers,
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** Delivers `jobs` in one call; the results are in the order of the jobs. */
export async function deliver<Env>(
  worker: HandlerWorker<Env>,
  env: NoInfer<Env>,
  ...jobs: TestJob[]
): Promise<Result[]> {
  const deliveries = jobs.map((job, index) => ({
    delivery_id: `del_${index}`,
    job: { id: `job-${index}`, args: [], attempt: 1, ...job },
  }));
  const response = await worker.fetch(post({ worker_id: 'push_test', deliveries }), env);
  if (response.status !== 200) throw new Error(`the Worker answered ${response.status}: ${await response.text()}`);
  const { results } = await response.json<{ results: Result[] }>();
  return deliveries.map(({ delivery_id }) => {
    const own = results.filter((result) => result.delivery_id === delivery_id);
    if (own.length !== 1 || !own[0]) throw new Error(`${delivery_id} has ${own.length} results`);
    return own[0];
  });
}

/** Delivers one job. */
export async function deliverOne<Env>(worker: HandlerWorker<Env>, env: NoInfer<Env>, job: TestJob): Promise<Result> {
  const [result] = await deliver(worker, env, job);
  if (!result) throw new Error('no result');
  return result;
}
