/**
 * What is in memory must be what an object that is constructed now would read from storage: nothing may be known only here, and
 * nothing stored may be unknown. What is no copy of storage but a bound or a hint is compared as what it promises; each says why.
 */
import { RANK_BIT, sequenceOf } from '../../src/job/ids';
import type { QueueEngine } from '../../src/queue/engine';
import { stats } from '../../src/queue/read/stats';
import { countArchived } from '../../src/queue/store/archive';
import { ChunkScan } from '../../src/queue/store/chunks/scan';
import type { Position } from '../../src/queue/store/due-index';
import { type JobRow, STATE } from '../../src/queue/store/job-row';
import { endOf } from '../../src/queue/store/leases';
import { laneName, laneOf } from '../../src/queue/store/limits/lanes';
import type { Limiter } from '../../src/queue/store/limits/limiter';
import { QUEUE_KEY } from '../../src/queue/store/limits/limiters';
import type { QueueParts } from '../../src/queue/store/parts';
import { selectReady } from '../../src/queue/store/ranks';
import { LINE, Scan } from '../../src/queue/store/scan';
import { holds, same } from './agree';
import type { Scene } from './scene';

/** Jobs of which the order is compared. */
const MOST_READY = 60;

/** By how much alarms that fire early, again and again, may push the next one; ms. */
const SLACK_MS = 20;

/** Pause after due work that failed, ms. */
const RETRY_MS = 1_000;

/**
 * Compares memory with storage.
 * @param deeply order, counts and limits, too
 * @param isNew with an object that is constructed for it: see `World.asNew`
 * @param limits false: the clock went back, and starts count again that are stored, but were forgotten here
 */
export function compareFresh(scene: Scene, deeply: boolean, { isNew = deeply, limits = true } = {}): void {
  const { world, now } = scene;
  world.quietly(() =>
    world.asNew(isNew, (engine, planned) => {
      const [live, fresh] = [world.engine.q, engine.q];
      if (live.store.leases.pushed.size > 0) {
        // Which pushes are under way no row knows: a new object takes all of them for abandoned. A call that could not be made
        // keeps its slot until its lease ends.
        fresh.store.leases.underWay.add(Array.from(live.store.leases.pushed, (active) => ({ active })));
        fresh.load();
      }
      compareSettings(live, fresh);
      compareLeases(live, fresh, world.hasFailed);
      compareBounds(live, fresh, now);
      compareOthers(live, fresh);
      if (!deeply) return;
      compareBlocks(live, fresh);
      compareCounts(live, fresh, now);
      if (limits) compareLimits(live, fresh, now);
      compareOrder(live, fresh, now);
      // One that looked before knows of what it planned then.
      if (isNew) compareAlarm(scene, engine, planned);
    }),
  );
}

/** The inside of a class, where nobody else needs to look. */
function inside<T>(object: object): T {
  return object as T;
}

const sorted = <T>(values: Iterable<T>): T[] => [...values].sort((a, b) => Number(a) - Number(b));

function compareSettings(live: QueueParts, fresh: QueueParts): void {
  const of = (q: QueueParts) => ({
    ...{
      paused: q.config.paused,
      draining: q.config.draining,
      evicting: q.store.evicting,
      removal: q.config.removal,
      at: q.config.pausedChangedAt,
    },
    ...{
      own: q.config.own,
      defaults: q.config.defaults,
      settings: q.config.settings,
      announced: [...q.config.announced],
    },
  });
  same(of(live), of(fresh), 'settings');
}

/** @param hasFailed a statement failed since the object was constructed */
function compareLeases(live: QueueParts, fresh: QueueParts, hasFailed: boolean): void {
  type Inside = { live: Map<number, Set<number>>; free: number[]; nextId: number };
  // Where what followed the commit of a claim failed, its call was never made: the slot is taken until the lease ends, which
  // a new object sees as abandoned.
  const isUnsent = ({ target }: { target?: string }) => hasFailed && target !== undefined;
  const of = ({ store: { leases, blocks } }: QueueParts) => {
    const { live: rows, free } = inside<Inside>(leases);
    const active = [...leases.active.values()].sort((a, b) => a.key - b.key);
    return {
      active: active.map(({ key, type, claim, attempt, leaseId, workerId, startedAt, expiresAt, ...rest }) => {
        const { visibilityMs, timeoutAt, target, orphaned, limitKey, indexed } = rest;
        const pushed = isUnsent(rest) ? [Math.min(expiresAt, timeoutAt)] : [timeoutAt, orphaned];
        // `putOff` is left out: that an attempt could not be ended is known only to the object that tried.
        return [
          ...[key, type, claim, attempt, leaseId, workerId, startedAt, expiresAt],
          ...[visibilityMs, ...pushed, target, limitKey, indexed],
        ];
      }),
      pushed: sorted(Array.from(leases.pushed).flatMap((entry) => (isUnsent(entry) ? [] : entry.key))),
      rows: [...rows].map(([id, keys]) => [id, sorted(keys)] as const).sort(([a], [b]) => a - b),
      free: sorted(free),
      running: [...leases.runningByKey].sort(([a], [b]) => (a < b ? -1 : 1)),
      singles: sorted(Array.from(blocks.singles.after(0), ({ key }) => key)),
    };
  };
  same(of(live), of(fresh), 'leases');
  const { earliest, active } = live.store.leases;
  // A lower bound: it may stay behind when the first attempt ends, but never pass one that runs.
  for (const { key, expiresAt, timeoutAt, putOff = 0 } of active.values()) {
    const end = Math.max(Math.min(expiresAt, timeoutAt), putOff);
    holds(earliest <= end, () => `the lease of ${key} ends at ${end}, before ${earliest}`);
  }
}

/** Bounds and hints that save reading: they may be too careful, never wrong. */
function compareBounds(live: QueueParts, fresh: QueueParts, now: number): void {
  // No number is given twice: one that was given and left no trace is on record.
  holds(fresh.store.nextSequence <= live.store.nextSequence, () => 'a number is stored that was never given');
  for (const priority of fresh.store.priorities) {
    holds(live.store.priorities.has(priority), () => `nobody knows of priority ${priority}`);
  }
  fresh.store.expiry.next = firstExpiry(live, fresh);
  holds(
    live.store.expiry.next <= fresh.store.expiry.next,
    () => `a job expires at ${fresh.store.expiry.next}, before ${live.store.expiry.next}`,
  );
  // A new object looks once at what an override held up that has ended; this one has done so.
  fresh.store.limiters.overrides.takeEnded(now, Number.POSITIVE_INFINITY);
  holds(
    live.store.limiters.nextCheck <= fresh.store.limiters.nextCheck,
    () => `a key is due at ${fresh.store.limiters.nextCheck}, not ${live.store.limiters.nextCheck}`,
  );
}

/** When the first job expires that does not run: one that does is looked at again when its attempt ends. */
function firstExpiry({ store: { leases, expiry } }: QueueParts, fresh: QueueParts): number {
  if (expiry.next <= fresh.store.expiry.next) return fresh.store.expiry.next;
  const query = `SELECT min(expires_at) AS at FROM jobs WHERE expires_at IS NOT NULL AND ended_at IS NULL
    AND state <> ${STATE.held} AND key NOT IN (SELECT value FROM json_each(?))`;
  const { at } = fresh.store.sql.exec<{ at: number | null }>(query, JSON.stringify([...leases.active.keys()])).one();
  return at ?? Number.POSITIVE_INFINITY;
}

function compareOthers(live: QueueParts, fresh: QueueParts): void {
  const used = (q: QueueParts) =>
    [q.store.progress, q.store.checkpoints, q.store.checkpoints.values].map(
      (table) => inside<{ used: boolean }>(table).used,
    );
  const wasUsed = used(live);
  for (const [index, is] of used(fresh).entries()) holds(wasUsed[index] === true || !is, () => 'rows nobody looks for');
  const locks = (q: QueueParts) => [...q.store.locks.all()].sort((a, b) => a.key - b.key);
  same(locks(live), locks(fresh), 'locks');
  const ofCrons = ({ store: { crons } }: QueueParts) => {
    type Inside = { known: Map<string, number>; waitingNames: Set<string>; acrossNames: Set<string> };
    const { known, waitingNames, acrossNames } = inside<Inside>(crons);
    return [[...known].sort(([a], [b]) => (a < b ? -1 : 1)), [...waitingNames].sort(), [...acrossNames].sort()];
  };
  same(ofCrons(live), ofCrons(fresh), 'entries');
  // Between transactions nothing is on its way.
  same(live.store.archive.size, 0, 'completed jobs that nobody writes');
  const { gathered, filled } = inside<{ gathered: unknown[]; filled: Map<string, boolean> }>(live.store.outbox);
  same(gathered.length, 0, 'messages that nobody writes');
  if (fresh.store.outbox.isEmpty) return;
  for (const [kind, is] of filled) if (!is) holds(!fresh.store.outbox.has(kind), () => `nobody sends ${kind}`);
}

function compareBlocks(live: QueueParts, fresh: QueueParts): void {
  holds(live.store.blocks.line.alone === undefined, () => 'a job is held back');
  const of = ({ store: { blocks } }: QueueParts) =>
    Array.from(blocks.all(0, false), ({ key, alias, type, priority, due_at, created_at }) => [
      ...[key, alias, type, priority, due_at, created_at],
    ]);
  same(of(live), of(fresh), 'jobs in blocks');
  same(live.store.blocks.highest(), fresh.store.blocks.highest(), 'highest number in a block');
}

/** What was counted before must be what is counted now; what was not counted has nothing to say. */
function compareCounts(live: QueueParts, fresh: QueueParts, now: number): void {
  const { counted, size } = inside<{ counted: number | null; size: number | null }>(live.store.depth);
  if (counted !== null) same(counted, fresh.store.depth.jobs(), 'depth');
  if (size !== null) same(size, fresh.store.depth.bytes(), 'bytes of jobs that have not ended');
  same(live.store.blocks.count(), fresh.store.blocks.count(), 'jobs in blocks, counted');
  if (live.store.tally.isCounted) {
    const of = (q: QueueParts) => {
      const { standing, priorities } = q.store.tally.read(q.store.priorities, now);
      return { standing, priorities: [...priorities].filter(([, n]) => n !== 0).sort(([a], [b]) => a - b) };
    };
    same(of(live), of(fresh), 'tally');
  }
  if (live.store.counts.line !== null) {
    stats(fresh, now);
    same(live.store.counts.line, fresh.store.counts.line, 'length of the line');
  }
  if (live.store.counts.dead !== null) same(live.store.counts.dead, fresh.store.counts.countDead(), 'dead letters');
  same(countArchived(live.store.sql), countArchived(fresh.store.sql), 'completed jobs');
}

function compareLimits(live: QueueParts, fresh: QueueParts, now: number): void {
  const { cache } = inside<{ cache: Map<string, Limiter> }>(live.store.limiters);
  for (const [key, limiter] of cache) {
    const stored = fresh.store.limiters.find(key);
    // A key that was only asked about is not stored before it is used.
    if (!stored) {
      holds(!limiter.isStored, () => `nothing is stored of ${key}`);
      continue;
    }
    same(limiter.checkAt, stored.checkAt, `when ${key} is looked at`);
    // What the queue's own key allows is not read from its row, but from the settings whenever it is used.
    if (key === QUEUE_KEY) stored.limits = limiter.limits;
    same(limiter.limits, stored.limits, `limits of ${key}`);
    const running = live.store.leases.runningByKey.get(key) ?? 0;
    // What no longer counts may be forgotten here and still be stored: what follows from it is the same.
    const of = ({ usage, limits }: Limiter) => [usage.room(limits, running, now), usage.opensAt(limits, now) ?? 0];
    const [room, opensAt] = of(limiter) as [number, number];
    const [freshRoom, freshOpensAt] = of(stored) as [number, number];
    same(room, freshRoom, `room of ${key}`);
    same(Math.max(opensAt, now), Math.max(freshOpensAt, now), `when ${key} opens`);
  }
  for (const key of new Set(live.store.cursors.keysBehind())) compareLanes(live, key, now);
}

/** A key with room has no lane that is closed, unless it opens by itself and nothing has happened since. */
function compareLanes({ store }: QueueParts, key: string, now: number): void {
  const limiter = store.limiters.find(key);
  if (!limiter || limiter.holder || store.limiters.nextCheck <= now) return;
  const running = store.leases.runningByKey.get(key) ?? 0;
  // Of those that were read ahead again, as many as there is room for, some may not start yet; no others are read then.
  const isAhead = (scan: Scan) =>
    scan instanceof ChunkScan
      ? inside<{ byKey: Map<number, unknown> }>(scan).byKey.size > 0
      : [...scan.turns.values()].some(({ isEmpty }) => !isEmpty);
  const isClosed = (name: string) =>
    store.cursors
      .all()
      .some((scan) => !isAhead(scan) && [...scan.behind.values()].some((lanes) => lanes.isClosed(name)));
  for (const hasBegun of [false, true]) {
    const room = limiter.room(running, now, hasBegun);
    holds(room <= 0 || !isClosed(laneName(key, hasBegun)), () => `jobs wait for ${key}, which has room for ${room}`);
  }
}

/**
 * What a claim would be given, before limits have their say. Cursors and the head of the line save reading what is taken: what
 * they skip must be nothing, so the new object reads without them.
 */
function compareOrder(live: QueueParts, fresh: QueueParts, now: number): void {
  compareHead(live, fresh, now);
  if (live.store.gates.rules) {
    compareGroups(live, fresh);
    return;
  }
  const ready = (q: QueueParts, scan: Scan): JobRow[] => {
    const look = (row: JobRow) =>
      q.store.leases.active.has(row.key) || (row.expires_at !== null && row.expires_at <= now) || isBehind(row)
        ? 'pass'
        : 'take';
    return selectReady(q.store, scan, now, MOST_READY, look);
  };
  const where = live.store.cursors.pull.any;
  type Passed = { forgotten?: { from: Position; names: Set<string> }; order: (a: Position, b: Position) => number };
  // What it has passed because its key has no room is not read again, or only once it goes back.
  const isBehind = (row: JobRow): boolean => {
    const name = laneOf(row);
    const [rank, at] = row.due_at === null ? ([LINE, row.enqueued_at] as const) : ([row.priority, row.due_at] as const);
    const lanes = where.behind.get(rank);
    if (name === undefined || !lanes) return false;
    const position = { at, attempt: row.attempt, key: row.key };
    const { forgotten, order } = inside<Passed>(lanes);
    const isForgotten = forgotten?.names.has(name) && order(position, forgotten.from) >= 0;
    return isForgotten || lanes.has(name, position);
  };
  const copy = new Scan();
  copy.line = where.line;
  for (const [priority, position] of where.due) copy.due.set(priority, position);
  const stored = ready(fresh, new Scan());
  const keys = (rows: readonly JobRow[]) => rows.map(({ key }) => key);
  same(keys(ready(live, copy)), keys(stored), 'what a claim is given, in order');
  for (const [index, row] of stored.entries()) {
    const before = stored[index - 1];
    if (before) holds(mayPrecede(before, row), () => `${before.key} comes before ${row.key}`);
  }
}

/** Where groups take turns, what comes first depends on what came before. But who waits for whom is stored. */
function compareGroups(live: QueueParts, fresh: QueueParts): void {
  const holders = ({ store: { gates } }: QueueParts) => {
    const { holders: of } = inside<{ holders: Map<string, number[]> | undefined }>(gates);
    return of && [...of].map(([group, keys]) => [group, sorted(keys)] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  };
  const known = holders(live);
  if (known) same(known, holders(fresh), 'jobs that hold their groups up');
  const running = ({ store: { leases } }: QueueParts) =>
    [...leases.runningByGroup].sort(([a], [b]) => (a < b ? -1 : 1));
  same(running(live), running(fresh), 'attempts of each group');
}

/** Behind the head of the line nothing stands that waits. */
function compareHead(live: QueueParts, fresh: QueueParts, now: number): void {
  const ready = (line: number): number[] => {
    const scan = new Scan();
    scan.reset(line);
    const { active } = fresh.store.leases;
    const look = ({ key, expires_at }: JobRow) =>
      active.has(key) || (expires_at !== null && expires_at <= now) ? 'pass' : 'take';
    return sorted(Array.from(selectReady(fresh.store, scan, now, 1_000, look), ({ key }) => key));
  };
  same(ready(live.store.cursors.head()), ready(0), 'what is ready behind the head of the line');
}

/** Priority, then the moment, then the number; those that were tried come after the others of their moment. */
function mayPrecede(a: JobRow, b: JobRow): boolean {
  if (a.priority !== b.priority) return a.priority > b.priority;
  const [at, bt] = [a, b].map(({ due_at, enqueued_at }) => due_at ?? enqueued_at) as [number, number];
  // Within the line numbers decide alone.
  if (a.due_at === null && b.due_at === null) return a.key < b.key;
  if (at !== bt) return at < bt;
  // In the due index one that was tried stands behind the others of its moment, and one that was never in the line behind those that
  // were. So one of the line may go before it that has a higher number.
  if (a.due_at === null || b.due_at === null) {
    const mayStandBehind = a.due_at === null && b.key >= RANK_BIT;
    return sequenceOf(a.key) < sequenceOf(b.key) || a.attempt < b.attempt || mayStandBehind;
  }
  return a.attempt !== b.attempt ? a.attempt < b.attempt : a.key < b.key;
}

/** Nothing is due for a new object before this one is awake. */
function compareAlarm(
  { world, model, lost, mayBeLater }: Scene,
  engine: QueueEngine,
  planned: () => number | null,
): void {
  // What failed, or what nobody took, is left alone by the object that knows of it.
  const isPutOff = [...world.engine.q.store.leases.active.values()].some(({ putOff = 0 }) => putOff > 0);
  const isLeftAlone = [...model.crons.entries.values()].some(
    ({ notBefore, asked }) => notBefore > 0 || asked.length > 0,
  );
  // Nor does a new object know which targets, and whose messages, must rest for a while.
  const { q } = world.engine;
  const mayRest = q.handlers.pushesAny || !q.store.outbox.isEmpty;
  // What was locked beyond its retention is looked at a moment after it was unlocked.
  const isUnlocked = model.parts.has('shares');
  // What is under way stands by with a later wake; a new object would begin it anew, at once.
  if (lost || isPutOff || isLeftAlone || world.isUnderWay || mayBeLater || mayRest || isUnlocked) return;
  // A new object reads of a lease what was granted, and then what has extended it: it would wake once for nothing.
  const { leases } = engine.q.store;
  leases.earliest = Math.min(...Array.from(leases.active.values(), endOf));
  engine.armNext();
  const at = planned();
  if (at === null) return;
  holds(world.alarm !== null, () => `nothing is armed although a new object would wake at ${at}`);
  // What failed and is due already is tried again after a pause; a new object would begin it at once.
  const by = at <= world.now + 1 ? Math.max(at, world.failedAt + RETRY_MS) : at;
  holds(
    (world.alarm as number) <= by + SLACK_MS,
    () => `armed for ${world.alarm}, although a new object would wake at ${at}`,
  );
}
