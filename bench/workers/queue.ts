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
  /** Alarms that fired, and messages of sockets that arrived. */
  alarms: number;
  messages: number;
}

/** Sums what cursors report. A cursor knows its rows only once it was read, so the newest wait for a while. */
class Counter {
  private readonly open: SqlStorageCursor<Record<string, SqlStorageValue>>[] = [];
  private readonly sums: Counts = { rowsWritten: 0, rowsRead: 0, statements: 0, setAlarm: 0, alarms: 0, messages: 0 };

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

  add(what: 'alarms' | 'messages'): void {
    this.sums[what]++;
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

  override alarm(): Promise<void> {
    counters.get(this.ctx)?.add('alarms');
    return super.alarm();
  }

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    counters.get(this.ctx)?.add('messages');
    super.webSocketMessage(socket, message);
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
  if (action === 'requests') return Response.json(requests);
  if (action === 'clock') return Response.json(Date.now());
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

/** Requests to this Worker, and its calls of objects, each of which is billed as a request. */
const requests = { worker: 0, calls: 0 };

/** Members of a stub that call nothing. */
const QUIET = new Set<string | symbol>(['id', 'name', 'then']);

function counting<T extends object>(namespace: T): T {
  const calls = (stub: object) =>
    new Proxy(stub, {
      get: (target, name) => {
        const method = Reflect.get(target, name) as unknown;
        if (QUIET.has(name) || typeof method !== 'function') return name === 'then' ? undefined : method;
        return (...args: unknown[]) => {
          requests.calls++;
          return Reflect.apply(method, target, args);
        };
      },
    });
  return new Proxy(namespace, {
    get: (target, name) => {
      const method = Reflect.get(target, name) as unknown;
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => {
        const made = Reflect.apply(method, target, args) as object;
        return name === 'getByName' ? calls(made) : made;
      };
    },
  });
}

/** The environment that counts, made once: what is derived from an environment is kept by it. */
let measured: BenchEnv | undefined;

function countingEnv(env: BenchEnv): BenchEnv {
  measured ??= { ...env, QUEUES: counting(env.QUEUES), DIRECTORY: counting(env.DIRECTORY as object) } as BenchEnv;
  return measured;
}

export default {
  fetch: (request, env, ctx) => {
    // Not parsed: what the bench looks at must cost the product nothing.
    const at = request.url.indexOf('/bench/');
    if (at >= 0) return answerBench(env, request.url.slice(at));
    if (!env.BENCH_COUNT) return app.fetch(request, env, ctx);
    requests.worker++;
    return app.fetch(request, countingEnv(env), ctx);
  },
} satisfies ExportedHandler<BenchEnv>;
