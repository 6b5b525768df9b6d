/**
 * The Worker under test: Tocsin itself, with routes below `/bench` that read figures no public route shows. Rows and
 * alarms are counted only with `BENCH_COUNT`, so that measuring speed costs nothing.
 */
import type { Env } from '../../src/config';
import app, { DirectoryObject, QueueObject } from '../../src/index';

export { DirectoryObject };

type BenchEnv = Omit<Env, 'QUEUES'> & { QUEUES: DurableObjectNamespace<BenchQueueObject>; BENCH_COUNT?: boolean };

export interface Counts {
  rowsWritten: number;
  rowsRead: number;
  statements: number;
  setAlarm: number;
}

/** Sums what cursors report. A cursor knows its rows only once it was read, so the newest wait for a while. */
class Counter {
  private readonly open: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
  private readonly sums: Counts = { rowsWritten: 0, rowsRead: 0, statements: 0, setAlarm: 0 };

  constructor(storage: DurableObjectStorage) {
    const { sql } = storage;
    const exec = sql.exec.bind(sql);
    const setAlarm = storage.setAlarm.bind(storage);
    Object.defineProperty(sql, 'exec', {
      value: (query: string, ...bindings: SqlStorageValue[]) => {
        const cursor = exec(query, ...bindings);
        this.sums.statements++;
        this.open.push(cursor);
        if (this.open.length > 2000) this.fold(1000);
        return cursor;
      },
    });
    Object.defineProperty(storage, 'setAlarm', {
      value: (time: number) => {
        this.sums.setAlarm++;
        return setAlarm(time);
      },
    });
  }

  read(): Counts {
    this.fold(this.open.length);
    return { ...this.sums };
  }

  private fold(count: number): void {
    for (const cursor of this.open.splice(0, count)) {
      this.sums.rowsWritten += cursor.rowsWritten;
      this.sums.rowsRead += cursor.rowsRead;
    }
  }
}

const counters = new WeakMap<DurableObjectState, Counter>();

function counted(ctx: DurableObjectState, env: BenchEnv): DurableObjectState {
  if (env.BENCH_COUNT) counters.set(ctx, new Counter(ctx.storage));
  return ctx;
}

export class BenchQueueObject extends QueueObject {
  constructor(ctx: DurableObjectState, env: BenchEnv) {
    super(counted(ctx, env), env);
  }

  /** Rows and alarms since this object was constructed. */
  counts(): Counts | null {
    return counters.get(this.ctx)?.read() ?? null;
  }

  /** How many jobs ended, and when the last one did, in the object's own clock (epoch ms). */
  ended(): { jobs: number; at: number } {
    return this.ctx.storage.sql
      .exec<{ jobs: number; at: number }>(
        'SELECT coalesce(sum(jobs), 0) AS jobs, coalesce(max(ended_at), 0) AS at FROM archive',
      )
      .one();
  }

  /** Removes everything that has ended, as the alarm does once retention is over. */
  async forgetEnded(): Promise<void> {
    await this.configure({ retention: { completed: 0 } });
    await this.alarm();
  }

  /** Drops the object from memory: the next request finds it cold. */
  evict(): void {
    this.ctx.abort('evicted by the benchmark');
  }
}

const ACTIONS = ['counts', 'ended', 'forgetEnded', 'evict'] as const;

async function answerBench(env: BenchEnv, path: string): Promise<Response> {
  const [, , action, queue] = path.split('/');
  const known = ACTIONS.find((name) => name === action);
  if (known === undefined || queue === undefined) return new Response('No such route.', { status: 404 });
  const stub = env.QUEUES.getByName(queue);
  try {
    return Response.json((await stub[known]()) ?? null);
  } catch (error) {
    if (known === 'evict') return Response.json(null);
    throw error;
  }
}

export default {
  fetch: (request, env, ctx) => {
    // Not parsed: what the bench looks at must cost the product nothing.
    const at = request.url.indexOf('/bench/');
    return at >= 0 ? answerBench(env, request.url.slice(at)) : app.fetch(request, env, ctx);
  },
} satisfies ExportedHandler<BenchEnv>;
