import { MAX_NAME, readWorkerId } from '../attempt/read-report';
import {
  defined,
  isObject,
  type Reader,
  readBoolean,
  readInteger,
  readList,
  readMeaning,
  readMilliseconds,
  readName,
  readQueueName,
  readString,
  withinBytes,
} from '../envelope/fields';
import { readMembers } from '../envelope/members';
import { invalidRequest } from '../errors';
import { formatInstant } from '../time';
import { poolNamedBy } from './pool-name';

export interface WorkerFacts {
  hostname?: string;
  pid?: number;
  queues?: string[];
  concurrency?: number;
  labels?: unknown;
  version?: string;
}

/** What a worker must do: continue; finish and take no more; finish and end. */
export type Directive = 'running' | 'quiet' | 'terminate';

/** How a worker describes what it is doing. */
export type ReportedState = 'running' | 'quiet' | 'draining' | 'shutting_down';

/** A heartbeat, as far as it is about the worker and not about its jobs. `stopped`: its last one. */
export interface WorkerBeat {
  worker_id: string;
  state: ReportedState | 'stopped';
  facts: WorkerFacts;
  active_jobs?: number;
}

export interface Heartbeat {
  worker_id: string;
  /** What the worker says about itself. */
  beat: WorkerBeat;
  /** The jobs to extend; absent: whatever the worker holds. */
  job_ids?: string[];
  visibility_timeout_ms?: number;
  queues?: string[];
}

const MAX_QUEUES = 100;
const MAX_HELD = 10_000;

export const readQueues: Reader<string[]> = (value, field) => [
  ...new Set(readList(MAX_QUEUES, readQueueName)(value, field)),
];

/** Words that workers use for what they are doing, and what each means here. */
const readState = readMeaning<WorkerBeat['state']>({
  ...{ running: 'running', active: 'running', idle: 'running', busy: 'running', quiet: 'quiet' },
  ...{ drain: 'draining', draining: 'draining' },
  ...{ terminate: 'shutting_down', terminating: 'shutting_down', shutting_down: 'shutting_down' },
  ...{ terminated: 'stopped', stopped: 'stopped' },
});

const MAX_CONCURRENCY = 1_000_000;
const MAX_LABEL_BYTES = 4096;

const readLabels: Reader<unknown> = (value, field) => {
  if (!Array.isArray(value) && !isObject(value)) throw invalidRequest(field, `${field} must be an array or an object.`);
  withinBytes(JSON.stringify(value), MAX_LABEL_BYTES, field);
  return value;
};

const readIds = readList(MAX_HELD, readString);

const readBody = readMembers({
  visibility_timeout_ms: readMilliseconds,
  // A worker that takes jobs of a pool says so here too; which queues these are is for the pool to say.
  queues: (value, field) =>
    Array.isArray(value) && poolNamedBy(value) !== undefined ? undefined : readQueues(value, field),
  active_job_ids: readIds,
  active_jobs: (value, field) =>
    typeof value === 'number' ? readInteger(0, MAX_HELD)(value, field) : readIds(value, field),
  state: readState,
  shutdown: readBoolean,
  hostname: readName(MAX_NAME),
  pid: readInteger(0, Number.MAX_SAFE_INTEGER),
  concurrency: readInteger(0, MAX_CONCURRENCY),
  labels: readLabels,
  version: readName(MAX_NAME),
});

/** Reads a heartbeat. `active_jobs` may be the ids or only their number. @throws {ApiError} 400 */
export function readHeartbeat(body: Record<string, unknown>): Heartbeat {
  const worker_id = readWorkerId(body.worker_id, 'worker_id');
  const { visibility_timeout_ms, active_job_ids: ids, active_jobs: active, ...about } = readBody(body, '');
  const { state: reported = 'running', shutdown, queues, hostname, pid, concurrency, labels, version } = about;
  const listed = Array.isArray(active) ? active : undefined;
  const named = listed || ids ? [...new Set([...(listed ?? []), ...(ids ?? [])])] : undefined;
  // A worker that counts zero jobs holds none, the same as an empty list.
  const job_ids = named ?? (active === 0 ? [] : undefined);
  const state = shutdown === true && reported !== 'stopped' ? 'shutting_down' : reported;
  // Where there is no process id, clients send 0.
  const facts = defined({ hostname, pid: pid || undefined, queues, concurrency, labels, version });
  const active_jobs = typeof active === 'number' ? active : named?.length;
  const beat: WorkerBeat = { worker_id, state, facts, ...defined({ active_jobs }) };
  return { worker_id, beat, ...defined({ job_ids, visibility_timeout_ms, queues }) };
}

export interface HeartbeatAnswer {
  state: Directive;
  /** The jobs whose leases were extended. */
  extended: string[];
  /** Of the jobs it named: those that were cancelled, and those that it does not hold any more for another reason. */
  cancelled: string[];
  lost: string[];
}

/** The answer on the wire. @param now epoch ms */
export function renderHeartbeat({ state, extended, cancelled, lost }: HeartbeatAnswer, now: number) {
  const jobs = { jobs_extended: extended, jobs_cancelled: cancelled, jobs_lost: lost };
  return { acknowledged: true as const, state, ...jobs, server_time: formatInstant(now) };
}
