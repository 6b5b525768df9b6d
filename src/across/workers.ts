import type { Env } from '../config';
import { hasTestHooks } from '../config';
import { inParallel } from '../durable/parallel';
import type { Bounds } from '../job/bounds';
import { callsFor } from '../job/chunk';
import { defined } from '../job/envelope/fields';
import { conflict, notFound, unwrap } from '../job/errors';
import type { JobView } from '../job/record';
import { bytesOfView, MAX_CLAIM_BYTES } from '../job/size';
import { formatInstant } from '../job/time';
import type { Directive, Heartbeat, HeartbeatAnswer } from '../job/worker/heartbeat';
import type { WorkerView } from '../rpc/directory';
import { directoryObject, queueObject } from '../rpc/stubs';
import type { ClaimRequest, HeartbeatReceipt, LeasedJob } from '../rpc/workers';
import { heartbeatWithin } from './bounds';
import { directoryRest } from './directory-backoff';
import { askByHome } from './locate';
import { claimFromPool } from './pools';
import { knownIfFew, nextQueues, queuesOf } from './queues';

export interface Fetch {
  /** The jobs claimed. Rejects only when none were. */
  jobs: Promise<JobView[]>;
  /** The caller is gone: no more jobs are claimed for it, and those on their way to it go back unused. */
  abandon(): Promise<void>;
}

/** The most jobs that a queue gives, by its name. */
export type Counts = ReadonlyMap<string, number>;

/**
 * Claims from the queues in order until `count` jobs are there; only the last one waits, to not exceed it. Failing
 * queues are skipped.
 * @param queues or a pool @param counts the most that some of these queues give @param requestId for the log
 */
export function beginFetch(
  env: Env,
  queues: readonly string[] | { pool: string },
  request: ClaimRequest,
  requestId: string,
  counts: Counts = new Map(),
): Fetch {
  const isPool = 'pool' in queues;
  const fetch = new FetchUnderWay(env, isPool ? [] : queues, request, requestId, counts);
  const jobs = isPool ? fetch.claimPortions(queues.pool) : fetch.claimInOrder();
  return {
    jobs,
    async abandon() {
      await fetch.withdraw();
      await fetch.takeBack(await jobs.catch(() => []));
    },
  };
}

class FetchUnderWay {
  private readonly waiter = crypto.randomUUID();
  private isAbandoned = false;
  /** The queue of a pool at which it waits. */
  private waitsAt: string | undefined;

  constructor(
    private readonly env: Env,
    private readonly queues: readonly string[],
    private readonly request: ClaimRequest,
    private readonly requestId: string,
    private readonly counts: Counts,
  ) {}

  async claimInOrder(): Promise<JobView[]> {
    const { queues, request } = this;
    const { count, wait_ms = 0 } = request;
    const single = queues.length === 1;
    const claimed: JobView[] = [];
    const failures: unknown[] = [];
    let bytes = 0;
    let calls = 0;
    for (const queue of queues) {
      if (calls >= count || bytes > MAX_CLAIM_BYTES || this.isAbandoned) break;
      try {
        const jobs = await this.claim(queue, this.mostOf(queue, count - calls), single ? wait_ms : 0);
        // Counted for the queues that follow.
        if (!single) for (const view of jobs) bytes += bytesOfView(view);
        claimed.push(...jobs);
        calls += callsFor(jobs);
      } catch (error) {
        failures.push(error);
      }
    }
    if (claimed.length > 0) {
      for (const error of failures)
        console.error(`${this.requestId} a queue could not hand out jobs, others did:`, error);
      return claimed;
    }
    if (failures.length > 0) throw failures[0];
    const last = queues.at(-1);
    if (single || wait_ms === 0 || last === undefined || this.isAbandoned) return [];
    return this.claim(last, this.mostOf(last, count), wait_ms);
  }

  private mostOf(queue: string, count: number): number {
    return Math.min(count, this.counts.get(queue) ?? count);
  }

  claimPortions(pool: string): Promise<JobView[]> {
    const { count, wait_ms = 0, worker_id } = this.request;
    return claimFromPool(this.env, pool, {
      count,
      worker: worker_id,
      waitMs: wait_ms,
      isAbandoned: () => this.isAbandoned,
      waitsAt: (queue) => {
        this.waitsAt = queue;
      },
      claim: (queue, wanted, waitMs) => this.claim(queue, wanted, waitMs),
    });
  }

  /** No queue waits for this caller any more. */
  async withdraw(): Promise<void> {
    this.isAbandoned = true;
    const last = this.waitsAt ?? this.queues.at(-1);
    if (last !== undefined) await queueObject(this.env, last).withdraw(this.waiter);
  }

  /** Gives back jobs that never reached a handler. */
  async takeBack(jobs: readonly JobView[]): Promise<void> {
    const groups = Map.groupBy(jobs, ({ record }) => record.queue);
    await inParallel([...groups], async ([queue, views]) => {
      const claims = views.map(({ record: { id, attempt, delivery_id, worker_id } }) =>
        defined({ job_id: id, attempt, delivery_id, worker_id }),
      );
      unwrap(await queueObject(this.env, queue).takeBack(claims));
    });
  }

  private async claim(queue: string, count: number, wait_ms: number): Promise<JobView[]> {
    const { wait_ms: _, ...rest } = this.request;
    const waiting = wait_ms > 0 ? { wait_ms, waiter: this.waiter } : {};
    return unwrap(await queueObject(this.env, queue).claim({ ...rest, count, ...waiting }));
  }
}

/**
 * Extends the worker's leases, which do not depend on the directory, then registers it, unless its key has bounds:
 * another party may have one of its name. @param requestId to log @throws {ApiError} 403
 */
export async function takeHeartbeat(
  env: Env,
  heard: Heartbeat,
  requestId: string,
  bounds?: Bounds,
): Promise<HeartbeatAnswer> {
  const inside = bounds && (await heartbeatWithin(env, bounds, heard));
  const registered = inside ? undefined : register(env, heard, requestId);
  const [answers, told] = await Promise.all([extendLeases(env, inside ?? heard), registered]);
  const directives: (string | undefined)[] = [told, ...answers.map(({ directive }) => directive)];
  const state = (['terminate', 'quiet'] as const).find((word) => directives.includes(word)) ?? 'running';
  return { state, ...whatBecameOf(heard, answers) };
}

function whatBecameOf({ job_ids, queues }: Heartbeat, answers: readonly HeartbeatReceipt[]) {
  const extended = new Set(answers.flatMap((answer) => answer.extended));
  // An id that a client chose may be known in several queues: a job that one of them extends is neither cancelled nor
  // lost.
  const cancelled = new Set(answers.flatMap((answer) => answer.cancelled).filter((id) => !extended.has(id)));
  // A job that is in none of the worker's own queues is not its job. If they are unknown it may be in another one.
  const missing = [...answers.flatMap((answer) => answer.lost), ...(queues ? (job_ids ?? []) : [])];
  const lost = new Set(missing.filter((id) => !extended.has(id) && !cancelled.has(id)));
  return { extended: [...extended], cancelled: [...cancelled], lost: [...lost] };
}

async function extendLeases(env: Env, heard: Heartbeat): Promise<HeartbeatReceipt[]> {
  const { worker_id, visibility_timeout_ms, queues } = heard;
  const testHooks = hasTestHooks(env);
  const answers: HeartbeatReceipt[] = [];
  const known = new Set<string>();
  const ask = async (queue: string, job_ids?: string[]) => {
    const request = defined({ worker_id, job_ids, visibility_timeout_ms, directives: testHooks || undefined });
    const answer = unwrap(await queueObject(env, queue).heartbeat(request));
    answers.push(answer);
    for (const id of [...answer.extended, ...answer.cancelled, ...answer.lost]) known.add(id);
  };
  if (heard.job_ids === undefined) await inParallel(await queuesOf(env, heard), (queue) => ask(queue));
  // A job may have moved, with its id, to another of the worker's queues.
  else await askByHome(env, heard.job_ids, queues, { ask, isFound: (id) => queues === undefined || known.has(id) });
  return answers;
}

async function register(env: Env, heard: Heartbeat, requestId: string): Promise<Directive> {
  const note = (error: unknown) =>
    console.error(`${requestId} worker ${heard.worker_id} could not be registered:`, error);
  const told = await directoryRest(env).ask(() => directoryObject(env).beat(heard.beat), note);
  if (told?.silencedChanged) await tellQueues(env, [heard.worker_id], told.silenced, heard.queues).catch(note);
  return told?.directive ?? 'running';
}

/** Notifies queues at once whether these workers may get jobs; a queue that misses this finds out within a minute. */
async function tellQueues(env: Env, ids: string[], silenced: boolean, queues?: readonly string[]): Promise<void> {
  const names = queues ?? (await nextQueues(env, undefined)).names;
  await inParallel(names, (name) => queueObject(env, name).silence(ids, silenced));
}

/** A worker that has sent a heartbeat. @throws {ApiError} 404 */
export async function knownWorker(env: Env, id: string): Promise<WorkerView> {
  const worker = await directoryObject(env).worker(id);
  if (worker === null) throw notFound('worker', id, 'A worker is registered by its first heartbeat.');
  return worker;
}

/** Directs workers, the directory first: a waking queue asks it. @param ids absent: all @returns those notified */
export async function directWorkers(env: Env, directive: Directive, ids?: string[]): Promise<string[]> {
  const told = await directoryObject(env).direct(directive, ids);
  if (told.length === 0) return told;
  if (directive !== 'running') {
    await tellQueues(env, told, true);
    return told;
  }
  // Some stay quiet: they announced that they leave.
  const silent = new Set(await directoryObject(env).silencedWorkers());
  const speaking = told.filter((id) => !silent.has(id));
  await tellQueues(env, speaking, false);
  return told;
}

/** Where a worker may hold jobs: in any queue; if these are too many to ask them all, in those that it named. */
const queuesOfWorker = async (env: Env, { queues = [] }: WorkerView): Promise<string[]> =>
  (await knownIfFew(env)) ?? queues;

export const jobsLeasedBy = async (env: Env, worker: WorkerView): Promise<LeasedJob[]> =>
  (await inParallel(await queuesOfWorker(env, worker), (name) => queueObject(env, name).leasedBy(worker.id))).flat();

/** Forgets a lost worker and frees its jobs. @throws {ApiError} 404; 409 while the worker is alive */
export async function removeWorker(env: Env, id: string): Promise<void> {
  const worker = await knownWorker(env, id);
  if (worker.state !== 'stale') throw notStale(worker);
  const queues = await queuesOfWorker(env, worker);
  await inParallel(queues, async (name) => unwrap(await queueObject(env, name).releaseLeased(id)));
  if ((await directoryObject(env).removeWorker(id)) === 'alive') throw notStale(worker);
  if (worker.directive !== 'running') await tellQueues(env, [id], false);
}

const notStale = ({ id, state, last_heartbeat_at }: WorkerView) =>
  conflict(`Worker ${id} sent a heartbeat at ${formatInstant(last_heartbeat_at)}; it is not stale.`, {
    worker_id: id,
    current_state: state,
    expected_state: 'stale',
  });
