/**
 * Pull workers by their heartbeats; others work as well, but are unknown. Memory knows every heartbeat; a row is
 * written for a new worker, a new description, and at most every half minute, so that no live worker is stale after
 * an eviction.
 */
import { EventLog } from '../durable/event-log';
import type { Schema } from '../durable/schema';
import type { EventData, EventType, LoggedData } from '../job/event-data';
import type { Directive, ReportedState, WorkerBeat, WorkerFacts } from '../job/worker/heartbeat';
import type { WorkerListRequest, WorkerPage, WorkerSummary, WorkerView } from '../rpc/directory';

/** A worker silent for longer than this is stale, ms. */
export const STALE_AFTER_MS = 60_000;

/** How old the stored time of the last heartbeat may get while heartbeats come in, ms. */
const SAVE_EVERY_MS = 30_000;

/** A worker silent for longer than this is forgotten, ms. */
const FORGET_AFTER_MS = 86_400_000;

/** Workers known at most; beyond, the one silent for longest is forgotten. */
const MAX_WORKERS = 10_000;

interface Stored {
  started_at: number;
  reported: ReportedState;
  directive: Directive;
  active_jobs: number;
  facts: WorkerFacts;
}

interface Known extends Stored {
  seen_at: number;
  saved_at: number;
}

type Row = { id: string; seen_at: number; data: string };

export class WorkerRegistry {
  /** `worker.started`, `worker.quiet`, `worker.stopped`; heartbeats would displace everything else. */
  readonly events = new EventLog('', 0);
  private known: Map<string, Known> | undefined;

  constructor(private readonly tables: Schema) {}

  beat(beat: WorkerBeat, now: number): { directive: Directive; silenced: boolean; silencedChanged: boolean } {
    const known = this.load();
    const before = known.get(beat.worker_id);
    if (beat.state === 'stopped') {
      if (before) this.drop(beat.worker_id, 'stopped', now);
      return { directive: 'terminate', silenced: false, silencedChanged: before !== undefined && isSilenced(before) };
    }
    const starts = before === undefined || isAnotherProcess(before, beat, now);
    if (before === undefined) this.makeRoom(now);
    const after: Known = {
      started_at: starts ? now : before.started_at,
      reported: beat.state,
      directive: starts ? 'running' : before.directive,
      active_jobs: beat.active_jobs ?? (starts ? 0 : before.active_jobs),
      facts: starts ? beat.facts : { ...before.facts, ...beat.facts },
      seen_at: now,
      saved_at: before?.saved_at ?? 0,
    };
    known.set(beat.worker_id, after);
    if (starts || describes(before) !== describes(after) || now - after.saved_at >= SAVE_EVERY_MS) {
      this.save(beat.worker_id, after);
    }
    if (starts) this.note('worker.started', beat.worker_id, now, { ...beat.facts });
    if (isQuiet(after) && !(before && !starts && isQuiet(before))) this.note('worker.quiet', beat.worker_id, now, {});
    return {
      directive: after.directive,
      silenced: isSilenced(after),
      silencedChanged: isSilenced(after) !== (before !== undefined && isSilenced(before)),
    };
  }

  list({ after, offset, limit }: WorkerListRequest, now: number): WorkerPage {
    const summary = this.summary(now);
    const known = this.load();
    const ids = [...known.keys()].filter((id) => after === undefined || id > after).sort();
    const page = ids.slice(offset, offset + limit).map((id) => view(id, known.get(id) as Known, now));
    return { workers: page, summary, more: ids.length > offset + limit };
  }

  summary(now: number): WorkerSummary {
    this.forgetGone(now);
    const known = this.load();
    const summary: WorkerSummary = { total: known.size, running: 0, quiet: 0, terminate: 0, stale: 0 };
    for (const worker of known.values()) summary[stateOf(worker, now)]++;
    return summary;
  }

  get(id: string, now: number): WorkerView | null {
    const worker = this.load().get(id);
    return worker ? view(id, worker, now) : null;
  }

  /** Directs these workers, or all. @returns the ids of those that are known */
  direct(directive: Directive, ids: readonly string[] | undefined, now: number): string[] {
    const known = this.load();
    const directed = (ids ?? [...known.keys()]).filter((id) => known.has(id));
    for (const id of directed) {
      const worker = known.get(id) as Known;
      if (worker.directive === directive) continue;
      const wasQuiet = isQuiet(worker);
      worker.directive = directive;
      this.save(id, worker);
      if (isQuiet(worker) && !wasQuiet) this.note('worker.quiet', id, now, { directive });
    }
    return directed;
  }

  remove(id: string, now: number): 'removed' | 'unknown' | 'alive' {
    const worker = this.load().get(id);
    if (!worker) return 'unknown';
    if (!isStale(worker, now)) return 'alive';
    this.drop(id, 'removed', now);
    return 'removed';
  }

  silenced(): string[] {
    return [...this.load()].flatMap(([id, worker]) => (isSilenced(worker) ? [id] : []));
  }

  private load(): Map<string, Known> {
    if (this.known) return this.known;
    const known = new Map<string, Known>();
    for (const { id, seen_at, data } of this.tables.rows<Row>('SELECT id, seen_at, data FROM workers')) {
      known.set(id, { ...(JSON.parse(data) as Stored), seen_at, saved_at: seen_at });
    }
    this.known = known;
    return known;
  }

  private save(id: string, worker: Known): void {
    const { seen_at, saved_at: _, ...stored } = worker;
    this.tables.put('workers', { id, seen_at, data: JSON.stringify(stored) });
    worker.saved_at = seen_at;
  }

  private drop(id: string, reason: EventData['worker.stopped']['reason'], now: number): void {
    this.load().delete(id);
    this.tables.rows('DELETE FROM workers WHERE id = ?', id);
    this.note('worker.stopped', id, now, { reason });
  }

  /** Workers that left and fell silent, and those without a heartbeat for a day. */
  private forgetGone(now: number): void {
    for (const [id, worker] of [...this.load()]) {
      if (worker.reported === 'shutting_down' && isStale(worker, now)) this.drop(id, 'stopped', now);
      else if (now - worker.seen_at > FORGET_AFTER_MS) this.drop(id, 'lost', now);
    }
  }

  private makeRoom(now: number): void {
    const known = this.load();
    if (known.size < MAX_WORKERS) return;
    this.forgetGone(now);
    if (known.size < MAX_WORKERS) return;
    const [oldest] = [...known].sort(([, a], [, b]) => a.seen_at - b.seen_at);
    if (oldest) this.drop(oldest[0], 'lost', now);
  }

  private note<Type extends EventType>(type: Type, id: string, now: number, data: LoggedData<Type>): void {
    this.events.add(type, id, now, data);
    this.events.publish();
  }
}

const isStale = (worker: Known, now: number): boolean => now - worker.seen_at > STALE_AFTER_MS;

const isLeaving = (worker: Stored): boolean => worker.reported === 'draining' || worker.reported === 'shutting_down';

/** True if the worker is quiet or shutting down. */
const isSilenced = (worker: Stored): boolean => worker.directive !== 'running' || isLeaving(worker);

const isQuiet = (worker: Stored): boolean => isSilenced(worker) || worker.reported === 'quiet';

/** What a heartbeat may change and what is worth a row at once. */
const describes = ({ reported, facts }: Stored): string => JSON.stringify([reported, facts]);

/** Is this a new process under an old name? Directives for the former one do not concern it. */
function isAnotherProcess(before: Known, beat: WorkerBeat, now: number): boolean {
  const { hostname, pid } = before.facts;
  if (beat.facts.pid !== undefined && pid !== undefined && beat.facts.pid !== pid) return true;
  if (beat.facts.hostname !== undefined && hostname !== undefined && beat.facts.hostname !== hostname) return true;
  const left = before.reported === 'shutting_down' || (before.directive === 'terminate' && isStale(before, now));
  return left && beat.state === 'running';
}

function stateOf(worker: Known, now: number): WorkerView['state'] {
  if (isStale(worker, now)) return 'stale';
  if (worker.directive === 'terminate' || worker.reported === 'shutting_down') return 'terminate';
  return isQuiet(worker) ? 'quiet' : 'running';
}

const view = (id: string, worker: Known, now: number): WorkerView => ({
  id,
  ...worker.facts,
  state: stateOf(worker, now),
  reported_state: worker.reported,
  directive: worker.directive,
  active_jobs: worker.active_jobs,
  started_at: worker.started_at,
  last_heartbeat_at: worker.seen_at,
});
