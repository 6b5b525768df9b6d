import type { Verbs } from '../../durable/answering';
import { ENDS, type EventLog } from '../../durable/event-log';
import type { After } from '../../durable/timers';
import { defined } from '../../job/envelope/fields';
import { ApiError, type Outcome } from '../../job/errors';
import type { JobView } from '../../job/record';
import { TERMINAL_STATES } from '../../job/states';
import type { WaitingFor } from '../../job/waiting';
import { gathered, MINUTE_MS, type Point, RECENT_MS } from '../../metrics/series';
import type { FailuresRequest } from '../../rpc/failures';
import type { GroupsRequest } from '../../rpc/groups';
import type { PointsRequest, QueueActivity, WatchedReading } from '../../rpc/metrics';
import type { SortedRequest } from '../../rpc/operations';
import type { DeadLetterRequest, EventsRequest, JobStory, ListRequest, StatesRequest } from '../../rpc/queue';
import type { QueueStats } from '../../rpc/stats';
import type { TargetView } from '../../rpc/targets';
import { jobs, look, noJob, none, type On, read, readAll, readJob } from '../access-modes';
import { pressureOf } from '../jobs/backpressure';
import { group, groupList, unknownGroup } from '../jobs/group-detail';
import { logOf, progressOf } from '../jobs/progress';
import { deadLetterRow } from '../jobs/redrive';
import { checkpointOf, stepsOf } from '../jobs/steps';
import { undoOf } from '../jobs/undo';
import type { QueueLife } from '../life';
import { deadLetterKinds, deadLetterPlaces, deadLettersAt } from '../read/dead-letters';
import { failures } from '../read/failures';
import { getMany, mustFind, runningOf, viewOf, viewOfRow } from '../read/find';
import { count, countStates, list, listPlaces, sorted } from '../read/list';
import { emptyStats, oldestAvailable, priorities, stats, upcoming } from '../read/stats';
import type { JobRow } from '../store/job-row';
import { moveOf } from '../store/moves';
import type { Configured, Observed, QueueParts, Stored, StoredQueue } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { storageUse } from '../store/storage';

const hasEnded = (view: JobView): boolean => TERMINAL_STATES.includes(view.record.state);

/** Resolves when the job ends, or after `ms`. */
const nextEnd = (events: EventLog, jobId: string, after: After, ms: number): Promise<void> =>
  new Promise((resolve) => {
    const finish = () => {
      end();
      stop();
      resolve();
    };
    const end = after(ms, finish);
    const stop = events.listen((published) => {
      if (published.some(({ type, subject }) => subject === jobId && ENDS.has(type))) finish();
    });
  });

/**
 * Reads a job, waiting until it has ended or `deadline` (epoch ms). @param read the job as it is now
 * @returns the last state read; 410 when the job was seen, ended, and nothing of it is kept
 */
async function awaitEnd(
  events: EventLog,
  jobId: string,
  deadline: number,
  { now, after }: { now(): number; after: After },
  read: () => Outcome<JobView>,
): Promise<Outcome<JobView>> {
  for (let seen = false; ; seen = true) {
    const outcome = read();
    if (!outcome.ok) return seen && outcome.error.code === 'not_found' ? { ok: false, error: pruned(jobId) } : outcome;
    const left = deadline - now();
    if (hasEnded(outcome.value) || left <= 0) return outcome;
    await nextEnd(events, jobId, after, left);
  }
}

const pruned = (jobId: string) =>
  new ApiError({
    status: 410,
    code: 'result_pruned',
    message: `Job ${jobId} has ended and is not kept.`,
    retryable: false,
    details: { job_id: jobId },
    hint: 'Such jobs are not kept; raise the retention of the job or its queue to read their results.',
  }).data;

/** For a queue that does not exist. */
const noActivity = (): QueueActivity => ({
  oldest_available_at: null,
  concurrency: { limit: null, active: 0 },
  suspended_targets: [],
  events_dropped: 0,
  totals: [],
  recent: [],
  counted_since: 0,
});

/** @param why says why a job does not run; absent: that is not asked of the one that waits longest. Writes nothing. */
function activity(
  q: Stored & Configured & Observed,
  { targets, events_dropped }: { targets: readonly TargetView[]; events_dropped: number },
  now: number,
  why?: (row: JobRow, now: number) => WaitingFor | undefined,
): QueueActivity {
  const { totals, points: all, since } = q.observed.meters.read();
  const lately = all.filter(({ at }) => at > now - RECENT_MS);
  const oldest = oldestAvailable(q, now);
  const row = why && oldest && rowByKey(q.store, oldest.key);
  return {
    oldest_available_at: oldest?.at ?? null,
    ...defined({ waiting_for: row && why?.(row, now) }),
    concurrency: { limit: q.config.settings.concurrency ?? null, active: q.store.leases.active.size },
    suspended_targets: targets.filter(({ state }) => state !== 'up').map(({ name }) => name),
    events_dropped,
    totals: [...totals],
    recent: gathered(lately, MINUTE_MS, 'all'),
    counted_since: since ?? q.config.createdAt,
  };
}

function points(q: Observed, { from, to, period_ms, type }: PointsRequest): Point[] {
  const isWanted = (point: Point) => point.at >= from && point.at <= to && (type === undefined || point.type === type);
  return gathered(q.observed.meters.read().points.filter(isWanted), period_ms, 'all');
}

/** @param job the job with what it waits for. @throws {ApiError} 404 */
function storyOf(q: StoredQueue & Observed, id: string, job: JobView, now: number): JobStory {
  const { row } = mustFind(q, id);
  if (row && moveOf(q.store.outbox, row.key)) return { job, log: [], checkpoint: null, steps: '{}' };
  const progress = progressOf(q, id, now);
  return {
    job,
    log: logOf(q, id),
    checkpoint: checkpointOf(q, id),
    steps: stepsOf(q, id),
    ...(progress.at !== undefined && { progress }),
  };
}

const viewJob: On<[id: string], ReturnType<typeof viewOf>> = (q, now, id) => viewOf(q, mustFind(q, id), now);

/** A job, with what it waits for if it waits, or with its lease if a worker has pulled it. */
function explained(life: QueueLife, q: StoredQueue, now: number, id: string): JobView {
  const found = mustFind(q, id);
  const view = viewOf(q, found, now);
  const waiting = found.row && life.engine?.waitingFor(found.row, now);
  if (waiting) view.record.waiting_for = waiting;
  const undo = undoOf(q, view.record.history, now);
  if (undo) view.record.undo = undo;
  const active = found.row && q.store.leases.active.get(found.row.key);
  // Each heartbeat sets a new end of the lease.
  if (active && active.target === undefined) {
    const { expiresAt: expires_at, visibilityMs } = active;
    view.record.lease = { renewed_at: expires_at - visibilityMs, expires_at };
  }
  return view;
}

/** What belongs to a queue besides its stored state. */
const besideState = ({ engine, followers }: QueueLife) => ({
  targets: engine?.targets() ?? [],
  events_dropped: followers.dropped,
});

const FAILURES = readAll(
  (q, now, request: FailuresRequest) => failures(q, request, now),
  () => ({ groups: [], looked: 0 }),
);
const NO_DEAD_LETTERS = () => ({ places: [], total: 0 });

export const READING_VERBS = {
  /** The job; one that waits says what for. */
  get: (life, id: string) => readJob<[string], JobView>((q, now) => explained(life, q, now, id))(life, id),
  /** The job with all that lies beside it. */
  story: (life, id: string) =>
    readJob<[string], JobStory>((q, now) => storyOf(q, id, explained(life, q, now, id), now))(life, id),
  /** The job, after waiting up to `waitMs` (0 … 60000) for its end. 410 when it ended and nothing of it is kept. */
  async awaitEnd(life, id: string, waitMs: number): Promise<Outcome<JobView>> {
    const view = () => life.read((q, now) => viewJob(q, now, id), jobs([id])) ?? noJob(id);
    const { engine } = life;
    return engine ? awaitEnd(engine.q.observed.events, id, Date.now() + waitMs, life, view) : view();
  },
  /** Those of these jobs that are here. `omitted` are here too, but did not fit into one message. */
  getMany: look(
    (q, now, ids: string[]) => getMany(q, ids, now),
    () => ({ jobs: [], omitted: [] }),
    jobs,
  ),
  runningOf: look((q, _, ids: string[]) => runningOf(q, ids), none, jobs),
  list: readAll(
    (q, now, request: ListRequest) => list(q, request, now),
    () => ({ jobs: [], total: 0, has_more: false, looked: 0, spent: 0 }),
  ),
  countStates: readAll(
    (q, now, request: StatesRequest) => countStates(q, request, now),
    () => ({ counts: emptyStats('', 0).counts, looked: 0 }),
  ),
  /** Groups of failures, a step of them. */
  failureGroups: FAILURES,
  /** Where the jobs of a list lie, for a reader that passes over them. */
  listPlaces: readAll(
    (q, now, request: ListRequest) => listPlaces(q, request, now),
    () => ({ places: [] }),
  ),
  /** The first jobs in another order than that of their making, a step of them. */
  sorted: readAll(
    (q, now, request: SortedRequest) => sorted(q, request, now),
    () => ({ entries: [], matched: 0, looked: 0 }),
  ),
  count: readAll(
    (q, now, request: Pick<SortedRequest, 'filter' | 'before'>) => count(q, request, now),
    () => ({ count: 0 }),
  ),
  /** Where the newest dead letters lie. */
  deadLetterList: readAll((q, now, request: DeadLetterRequest) => deadLetterPlaces(q, request, now), NO_DEAD_LETTERS),
  /** Two as the version before has them: without groups, and one type at most. */
  failures: FAILURES,
  deadLetterPlaces: readAll(
    (q, now, { type, ...request }: DeadLetterRequest & { type?: string }) =>
      deadLetterPlaces(q, { ...request, ...(type !== undefined && { types: [type] }) }, now),
    NO_DEAD_LETTERS,
  ),
  deadLettersAt: read(
    (q, now, keys: number[]) => deadLettersAt(q, keys, now),
    () => ({ jobs: [], rest: [] }),
  ),
  deadLetterKinds: readAll(
    (q) => deadLetterKinds(q),
    () => ({ total: 0, types: [], errors: [], complete: true }),
  ),
  deadLetter: readJob((q, now, id: string) => viewOfRow(q, deadLetterRow(q, id), now)),
  async stats(life): Promise<Outcome<QueueStats>> {
    return (
      (await life.readAll((q, now) => ({ ...stats(q, now), storage: storageUse(q) }))) ?? {
        ok: true,
        value: emptyStats(life.name, Date.now()),
      }
    );
  },
  /** When it next has work of its own, epoch ms; null: never. The question wakes it, so it arms its alarm. */
  nextDue: (life) => life.engine?.nextDue() ?? null,
  /** All its numbers, also of a queue that does not exist. It will tell the directory when they are no longer right. */
  async watch(life): Promise<Outcome<WatchedReading>> {
    const around = besideState(life);
    const read = await life.readAll((q, now) => {
      const reading = { ...stats(q, now), storage: storageUse(q), ...activity(q, around, now) };
      // Changes from here on must be reported.
      life.engine?.readers.read();
      return { ...reading, upcoming: upcoming(q, now) };
    });
    return read ?? { ok: true, value: { ...emptyStats(life.name, Date.now()), ...noActivity(), upcoming: [] } };
  },
  async priorities(life): Promise<{ priority: number; count: number }[]> {
    await life.engine?.caughtUp();
    return look((q, now) => priorities(q, now), none)(life);
  },
  groups: readAll(
    (q, now, request: GroupsRequest) => groupList(q, request, now),
    () => ({ groups: [], total: 0, waiting: 0, running: 0, ungrouped: 0, complete: true }),
  ),
  /** One group; zeros for one that has no jobs. */
  group: readAll(
    (q, now, name: string) => group(q, name, now),
    (name) => unknownGroup(name),
  ),
  async activity(life): Promise<QueueActivity> {
    await life.engine?.caughtUp();
    const around = besideState(life);
    const why = (row: JobRow, now: number) => life.engine?.waitingFor(row, now);
    const all = (q: QueueParts, now: number) => ({
      ...activity(q, around, now, why),
      ...defined({ pressure: pressureOf(q) }),
    });
    return look(all, noActivity)(life);
  },
  /** Minutes of a day, hours of a month, all types that are asked for together; oldest first. */
  points: look((q, _, request: PointsRequest) => points(q, request), none),
  events: look((q, _, request: EventsRequest) => q.observed.events.read(request), none),
  async targets(life): Promise<TargetView[]> {
    return life.present() ? (life.engine?.targets() ?? []) : [];
  },
  /** Tries those of this name that are paused or stopped. @returns these, as they are afterwards */
  async resumeTarget(life, name: string): Promise<TargetView[]> {
    return life.present() ? ((await life.engine?.resumeTarget(name)) ?? []) : [];
  },
} satisfies Verbs<QueueLife>;
