/** The columns of `jobs`, and what a row means at a given moment. */
import { mintId } from '../../job/ids';
import type { JobBody, JobErrorEntry, JobHistory, JobRecord } from '../../job/record';
import type { JobState } from '../../job/states';
import type { Active } from './leases';
import type { ReportedProgress } from './progress';

/** Values of `jobs.state`. `waiting` covers scheduled, available, retryable and active; `held` rows do not exist yet. */
export const STATE = { waiting: 0, pending: 1, cancelled: 2, discarded: 3, dead: 4, held: 5 } as const;

export type JobRow = {
  key: number;
  alias: string | null;
  state: number;
  type: string;
  priority: number;
  due_at: number | null;
  attempt: number;
  claims: number;
  created_at: number;
  enqueued_at: number;
  expires_at: number | null;
  ended_at: number | null;
  body: string;
  history: string | null;
  /** The key that the job counts under, if it is limited. */
  limit_key: string | null;
  /** While it waits for its key: when it became available. It has no `due_at` then. */
  waits_since: number | null;
};

/** The columns of `jobs`, in the order {@link readRows} takes them. */
export const ROW_COLUMNS =
  'key, alias, state, type, priority, due_at, attempt, claims, created_at, enqueued_at, expires_at, ended_at, body, history, limit_key, waits_since';

type RawRow = [
  key: number,
  alias: string | null,
  state: number,
  type: string,
  priority: number,
  due_at: number | null,
  attempt: number,
  claims: number,
  created_at: number,
  enqueued_at: number,
  expires_at: number | null,
  ended_at: number | null,
  body: string,
  history: string | null,
  limit_key: string | null,
  waits_since: number | null,
];

/**
 * Runs a query that selects {@link ROW_COLUMNS}. Rows come as arrays and are named here: the runtime takes about three
 * times as long to build objects with named members, and this is on the way of every job.
 */
export function* readRows(sql: SqlStorage, query: string, ...bindings: SqlStorageValue[]): Generator<JobRow> {
  for (const raw of sql.exec(query, ...bindings).raw<RawRow>()) {
    yield {
      key: raw[0],
      alias: raw[1],
      state: raw[2],
      type: raw[3],
      priority: raw[4],
      due_at: raw[5],
      attempt: raw[6],
      claims: raw[7],
      created_at: raw[8],
      enqueued_at: raw[9],
      expires_at: raw[10],
      ended_at: raw[11],
      body: raw[12],
      history: raw[13],
      limit_key: raw[14],
      waits_since: raw[15],
    };
  }
}

/** Reads the row with this key. */
export function rowByKey(sql: SqlStorage, key: number): JobRow | undefined {
  const [row] = readRows(sql, `SELECT ${ROW_COLUMNS} FROM jobs WHERE key = ?`, key);
  return row;
}

/** Does the row stand in the line of immediate jobs (or run, having stood there)? */
export function isInLine(row: Pick<JobRow, 'state' | 'due_at' | 'waits_since'>): boolean {
  return row.state === STATE.waiting && row.due_at === null && row.waits_since === null;
}

/** A completed job as an archive chunk keeps it. Member names are short because every job pays for them. */
export interface ArchivedJob {
  k: number;
  /** Client-chosen id. */
  a?: string;
  t: string;
  p: number;
  /** Attempt that completed it. */
  n: number;
  /** Claims over its life. */
  c: number;
  /** created, enqueued, started, completed. */
  at: [number, number, number, number];
  b: JobBody;
  /** Failures before the success. */
  e?: JobErrorEntry[];
  r?: unknown;
  /** The result lies in `results`. */
  far?: 1;
  /** Execution limit of the pushed attempt that completed it, ms. */
  push?: number;
  /** The last progress report. */
  pg?: ReportedProgress;
  /** There may be a checkpoint. */
  cp?: 1;
}

/** Parses the history column. One that cannot be read counts as empty: a damaged record must not stop its queue. */
export function historyOf(row: Pick<JobRow, 'history'>): JobHistory {
  if (row.history === null) return {};
  const history = readObject(row.history) as JobHistory | undefined;
  if (!history) return {};
  if (history.errors !== undefined && !(Array.isArray(history.errors) && history.errors.every(isObject))) {
    delete history.errors;
  }
  if (history.error !== undefined && !isObject(history.error)) delete history.error;
  return history;
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function readObject(json: string): object | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Parses the body column; undefined when it cannot be read. */
export function readableBody(row: Pick<JobRow, 'body'>): JobBody | undefined {
  return readObject(row.body) as JobBody | undefined;
}

/** Parses the body column. One that cannot be read counts as a job without arguments. */
export function bodyOf(row: Pick<JobRow, 'body' | 'type'>): JobBody {
  return readableBody(row) ?? { type: row.type, args: [], meta: {} };
}

/** The id of a row: chosen by the client, or made of creation time, route and key. */
export function idOf(route: number, row: { alias: string | null; created_at: number; key: number }): string {
  return row.alias ?? mintId(row.created_at, route, row.key);
}

/** The id of a completed job. */
export function idOfArchived(route: number, job: Pick<ArchivedJob, 'k' | 'a' | 'at'>): string {
  return idOf(route, { alias: job.a ?? null, created_at: job.at[0], key: job.k });
}

/** The state that a row is in at `now`, given its lease if it has one. */
export function stateOf(row: Pick<JobRow, 'state' | 'due_at' | 'attempt'>, active: boolean, now: number): JobState {
  if (row.state === STATE.pending) return 'pending';
  if (row.state === STATE.cancelled) return 'cancelled';
  if (row.state === STATE.discarded || row.state === STATE.dead) return 'discarded';
  if (active) return 'active';
  if (row.due_at !== null && row.due_at > now) return row.attempt > 0 ? 'retryable' : 'scheduled';
  return 'available';
}

/** A row as the queue hands it out. */
export function recordOf(
  row: JobRow,
  active: Active | undefined,
  context: { queue: string; route: number; now: number },
): JobRecord {
  const state = stateOf(row, active !== undefined, context.now);
  const history = historyOf(row);
  if (active) history.started_at = active.startedAt;
  const due = row.due_at ?? row.waits_since;
  const promoted = row.state === STATE.waiting && due !== null && due <= context.now;
  return {
    id: idOf(context.route, row),
    queue: context.queue,
    type: row.type,
    state,
    priority: row.priority,
    attempt: active ? active.attempt : row.attempt,
    created_at: row.created_at,
    enqueued_at: promoted ? Math.max(row.enqueued_at, due) : row.enqueued_at,
    ...((state === 'retryable' || state === 'scheduled') && { due_at: row.due_at as number }),
    body: row.body,
    history,
    ...(active?.workerId !== undefined && { worker_id: active.workerId }),
  };
}

/** An archived job as the queue hands it out. `result` is JSON text, fetched from `results` when it lies there. */
export function recordOfArchived(
  job: ArchivedJob,
  context: { queue: string; route: number; result?: string },
): JobRecord {
  const [created_at, enqueued_at, started_at, completed_at] = job.at;
  const result = context.result ?? ('r' in job ? JSON.stringify(job.r) : undefined);
  return {
    id: idOf(context.route, { alias: job.a ?? null, created_at, key: job.k }),
    queue: context.queue,
    type: job.t,
    state: 'completed',
    priority: job.p,
    attempt: job.n,
    created_at,
    enqueued_at,
    body: JSON.stringify(job.b),
    history: { started_at, completed_at, ...(job.e && { errors: job.e }) },
    ...(result !== undefined && { result }),
    ...(job.pg && { progress: 1, ...(job.pg.data && { progress_data: job.pg.data }) }),
  };
}
