/**
 * The Worker under load: the benchmark's Worker with routes below `/load`. They fill a queue from within its object and
 * read figures that no public route shows.
 */
import { UniqueLockObject } from '../../src/index';
import bench, { BenchQueueObject, DirectoryObject } from '../workers/queue';

export { DirectoryObject, UniqueLockObject };

/** Jobs in one transaction when a queue is stocked. */
const STOCK_CHUNK = 5_000;

interface Archived {
  /** Attempt that completed. */
  n: number;
  /** Its result… */
  r?: unknown;
  /** …unless that lies in `results`. */
  far?: 1;
}

export class LoadQueueObject extends BenchQueueObject {
  /**
   * Enqueues jobs without HTTP, to reach a depth in little time.
   * @param dueIn when they are due, ms from now; 0: at once
   */
  async stock(count: number, dueIn: number): Promise<{ jobs: number }> {
    const body = { type: 'bench.noop', args: [{ to: 'someone@example.com', template: 'welcome', n: 1 }], meta: {} };
    for (let done = 0; done < count; done += STOCK_CHUNK) {
      const scheduledAt = dueIn > 0 ? Date.now() + dueIn : undefined;
      const job = {
        type: body.type,
        priority: 0,
        body: JSON.stringify({ ...body, ...(scheduledAt && { scheduled_at: scheduledAt }) }),
        ...(scheduledAt !== undefined && { scheduledAt }),
      };
      const outcome = await this.enqueue(Array(Math.min(STOCK_CHUNK, count - done)).fill(job));
      if (!outcome.ok) throw new Error(outcome.error.message);
    }
    return { jobs: count };
  }

  /** How many jobs have ended in which way, and when the last one did (epoch ms). Cheap however many there are. */
  async progress(): Promise<{ completed: number; discarded: number; at: number }> {
    const { sql } = this.ctx.storage;
    const one = (query: string) => sql.exec<{ n: number | null }>(query).toArray()[0]?.n ?? 0;
    return {
      completed: one('SELECT sum(jobs) AS n FROM archive'),
      discarded: one('SELECT count(*) AS n FROM jobs WHERE ended_at IS NOT NULL'),
      at: Math.max(
        one('SELECT ended_at AS n FROM archive ORDER BY chunk DESC LIMIT 1'),
        one('SELECT max(ended_at) AS n FROM jobs WHERE ended_at IS NOT NULL'),
      ),
    };
  }

  /** Completed jobs by the attempt that completed them, and ended ones by type and attempts. */
  async outcomes(): Promise<{ completed: Record<number, number>; ended: Record<string, SqlStorageValue>[] }> {
    const completed: Record<number, number> = {};
    for (const { n } of this.archived()) completed[n] = (completed[n] ?? 0) + 1;
    const query = 'SELECT type, attempt, count(*) AS jobs FROM jobs WHERE ended_at IS NOT NULL GROUP BY 1, 2';
    return { completed, ended: this.ctx.storage.sql.exec(query).toArray() };
  }

  /** Results of completed jobs, in no order. */
  async results(): Promise<unknown[]> {
    const results: unknown[] = [];
    // One job after the other: all of them may be larger than the memory of an object.
    for (const { far, r } of this.archived()) if (far === undefined) results.push(r);
    // Those of large jobs have rows of their own.
    for (const { value } of this.ctx.storage.sql.exec<{ value: string }>('SELECT value FROM results')) {
      results.push(JSON.parse(value));
    }
    return results;
  }

  /** Collects garbage, where the server was started with a `gc` to call, so that the heap shows only live objects. */
  async collect(): Promise<boolean> {
    const { gc } = globalThis as { gc?: () => void };
    gc?.();
    return gc !== undefined;
  }

  private *archived(): Generator<Archived> {
    for (const { data } of this.ctx.storage.sql.exec<{ data: string }>('SELECT data FROM archive')) {
      yield* JSON.parse(data) as Archived[];
    }
  }
}

interface LoadEnv {
  QUEUES: DurableObjectNamespace<LoadQueueObject>;
}

const ACTIONS = ['stock', 'progress', 'outcomes', 'results', 'collect'] as const;

async function answerLoad(env: LoadEnv, url: URL): Promise<Response> {
  const [, , action, queue] = url.pathname.split('/');
  const known = ACTIONS.find((name) => name === action);
  if (known === undefined || queue === undefined) return new Response('No such route.', { status: 404 });
  const stub = env.QUEUES.getByName(queue);
  const number = (name: string) => Number(url.searchParams.get(name) ?? 0);
  return Response.json(await (known === 'stock' ? stub.stock(number('count'), number('due_in')) : stub[known]()));
}

type Fetch = NonNullable<typeof bench.fetch>;

export default {
  fetch: (request: Parameters<Fetch>[0], env: Parameters<Fetch>[1] & LoadEnv, ctx: ExecutionContext) => {
    // Parsed only where it is the bench's own: what it looks at must cost the product nothing.
    return request.url.includes('/load/') ? answerLoad(env, new URL(request.url)) : bench.fetch(request, env, ctx);
  },
};
