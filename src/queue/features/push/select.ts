/**
 * Chooses what to push: which jobs, to which target, in which calls. Everything here runs inside a transaction and uses
 * the moment it is given.
 */
import { coversQueue, ownsQueue, type TargetConfig } from '../../../dispatch/config';
import type { JobBody } from '../../../job/record';
import { hasCrashed, numbersOf, travelsAlone } from '../../jobs/chunks';
import { grant } from '../../jobs/claim';
import { fail, type Random } from '../../jobs/end-attempt';
import { expire } from '../../jobs/expire';
import { LimitCheck, noteStarts } from '../../jobs/limit-check';
import { passOver } from '../../jobs/pass-over';
import { LEASE_BEYOND_TIMEOUT_MS } from '../../store/active';
import { emptyBody, type JobRow, readableBody } from '../../store/job-row';
import { queueOpensAt, startsLeft } from '../../store/limits/queue-limit';
import type { QueueParts } from '../../store/parts';
import { selectReady } from '../../store/ranks';
import { rowByKey } from '../../store/row-lookup';
import { Scan, type Verdict } from '../../store/scan';
import { targetOf } from './handled-types';
import { CallPlan, ChunkedRound, hasChunk, MAX_CHARS_UNDER_WAY, PushSelection, type Round } from './plan';
import { connectionsLeft, type PushTarget } from './target';

/** Rows of the due index that are read again rather than remembered. */
const SHORT_WAY = 16;

export class PushSelector {
  /** Can a job of this queue be without a target although the queue belongs to handlers? */
  private readonly mayHoldOrphans: boolean;

  /** @param configs every target of the deployment @param targets those that this queue can push to */
  constructor(
    private readonly q: QueueParts,
    private readonly configs: readonly TargetConfig[],
    private readonly targets: readonly PushTarget[],
    private readonly random: Random,
  ) {
    this.mayHoldOrphans = ownsQueue(configs, q.name) && !coversQueue(configs, q.name);
  }

  /** Is there a job that the next selection would take, ask about, or find to have no handler? Claims nothing. */
  hasTakeable(now: number): boolean {
    const { q, configs } = this;
    const able = this.targets.filter((target) => target.health.allows(now) && target.room(q) > 0);
    if (able.some((target) => this.hasTakeableFor(target, now))) return true;
    const isOrphan = (row: JobRow) => !targetOf(configs, q.name, row);
    return this.mayHoldOrphans && this.finds(q.store.cursors.ofTarget(''), now, isOrphan);
  }

  /**
   * Chooses and claims what may be pushed now. Runs inside a transaction.
   * @param budget calls that may be made
   * @param charsUnderWay characters of the bodies that handlers have not answered
   */
  select(now: number, budget: number, charsUnderWay: number): PushSelection {
    const { q } = this;
    const selection = new PushSelection(MAX_CHARS_UNDER_WAY - charsUnderWay);
    if (q.config.isClosed(now)) return selection;
    let calls = budget;
    for (const target of this.targets) {
      if (!target.health.allows(now)) continue;
      if (target.isOutdated(now) || (target.shouldAsk(now) && this.isReadyFor(target, now, selection))) {
        selection.ask.add(target);
      }
      if (!target.isKnown) continue;
      calls -= this.selectFor(target, calls, now, selection);
    }
    if (this.mayHoldOrphans) this.findOrphans(now, selection);
    for (const row of q.store.turn.draw(selection.expired))
      if (rowByKey(q.store, row.key)?.ended_at === null) expire(q, row, now);
    for (const row of selection.orphans) this.orphan(row, now);
    const groupAt = q.store.cursors.nextGroup();
    if (groupAt > now) q.wake.at(groupAt);
    const opensAt = queueOpensAt(q, now);
    if (opensAt !== undefined && this.targets.some((target) => this.isReadyFor(target, now, selection))) {
      q.wake.at(opensAt);
    }
    return selection;
  }

  /** Is there a job ready for this target, as far as one look can tell? */
  private isReadyFor(target: PushTarget, now: number, selection: PushSelection): boolean {
    if (hasChunk(this.q, target, now)) return true;
    const ready = this.hasReadyFor(target, now);
    if (ready === 'unfinished') selection.unfinished = true;
    return ready === true;
  }

  /** Claims what may be pushed to one target. Answers how many calls that needs. */
  private selectFor(target: PushTarget, callsLeft: number, now: number, selection: PushSelection): number {
    const { q } = this;
    const room = target.room(q);
    if (room <= 0) {
      selection.full = true;
      return 0;
    }
    const isTrial = target.health.isStopped;
    if (callsLeft <= 0) {
      selection.starved ||= this.isReadyFor(target, now, selection);
      return 0;
    }
    const connections = this.connectionsLeft(target, selection);
    if (connections <= 0) {
      selection.full = true;
      return 0;
    }
    // A stopped target gets a single trial; the rest follows when it answers.
    const calls = isTrial ? 1 : Math.min(callsLeft, connections);
    const plan = new CallPlan(calls, target.batchSize);
    const starts = startsLeft(q, now);
    const limit = Math.min(room, calls * target.batchSize, starts);
    if (limit <= 0) return 0;
    const limits = new LimitCheck(q, now);
    const round: Round = {
      ...{ target, plan, now, selection, limits },
      ...{ running: target.runningByEntry(q), bodies: new Map(), seen: new Map(), starting: new Map() },
      ...{ slots: room, starts, chunks: [] },
    };
    const chunks = target.takesChunks ? new ChunkedRound(q, this.configs, round) : undefined;
    const rows = this.deferredRows(round, limit, chunks);
    const scan = q.store.cursors.ofTarget(target.id);
    if (rows.length < limit) {
      const look = (row: JobRow): Verdict => {
        // If a type no longer waits, its last jobs are before this cursor too.
        const isTaken = round.seen.get(row.key);
        if (isTaken !== undefined) {
          scan.exact &&= isTaken;
          return 'pass';
        }
        if (target.deferred.entries.has(target.entryOf(row.type))) return left(scan);
        return this.consider(row, scan, round, chunks);
      };
      const others = selectReady(q.store, scan, now, limit - rows.length, look, round.starting);
      selection.unfinished ||= scan.unfinished;
      rows.push(...others);
    }
    chunks?.start();
    if (round.slots <= 0) selection.full = true;
    if (!isTrial && (plan.isRefused || rows.length === calls * target.batchSize)) {
      // Every call was used: the next event checks whether more waits, or the first answer that frees a connection.
      if (calls < callsLeft) selection.full = true;
      else selection.starved = true;
    }
    rows.push(...round.chunks.flat());
    if (rows.length > 0) this.claimFor(round, rows);
    if (limits.setAside()) selection.starved = true;
    return rows.length > 0 ? plan.calls.length : 0;
  }

  /** How many more calls this target could be sent before the platform delays one. */
  private connectionsLeft({ config }: PushTarget, { calls }: PushSelection): number {
    if (!config.isRemote) return Number.POSITIVE_INFINITY;
    return connectionsLeft(this.targets) - calls.filter(({ target }) => target.config.isRemote).length;
  }

  /** Jobs of types whose concurrency was used up, as far as there is room again. */
  private deferredRows(round: Round, limit: number, chunks: ChunkedRound | undefined): JobRow[] {
    const { target, running, now, selection } = round;
    const { q } = this;
    const rows: JobRow[] = [];
    for (const entry of [...target.deferred.entries]) {
      if (rows.length >= limit) break;
      const scan = target.deferred.scanOf(q, entry);
      const look = (row: JobRow): Verdict => {
        if (target.entryOf(row.type) !== entry) return 'pass';
        const hasRoom = target.takes(row.type, running);
        if (!hasRoom) selection.full = true;
        const verdict = hasRoom ? this.consider(row, scan, round, chunks) : 'stop';
        round.seen.set(row.key, verdict === 'take');
        return verdict;
      };
      const found = selectReady(q.store, scan, now, limit - rows.length, look, round.starting);
      rows.push(...found);
      selection.unfinished ||= scan.unfinished;
      if (scan.emptied && !scan.hasBehind) target.deferred.remove(q, entry);
    }
    return rows;
  }

  /** @param scan the cursor by which the row was found */
  private consider(row: JobRow, scan: Scan, round: Round, chunks: ChunkedRound | undefined): Verdict {
    const { q } = this;
    const { target, plan, running, now, selection, limits, bodies } = round;
    if (passOver(q, row, now, selection.expired)) return 'pass';
    if (targetOf(this.configs, q.name, row) !== target.config) return left(scan);
    if (target.announced(row.type) === 'unknown') {
      // Only an announcement younger than the job can show that no handler takes it.
      if (target.wasAskedSince(Math.max(row.enqueued_at, row.due_at ?? 0), now)) selection.orphans.push(row);
      else if (target.mayAsk(now)) selection.ask.add(target);
      else target.isAwaited = true;
      return 'hold';
    }
    if (chunks && target.chunkFor(row.type)) return left(scan);
    chunks?.start(row);
    if (round.slots <= 0 || round.starts <= 0) {
      selection.full = true;
      return 'stop';
    }
    if (!target.takes(row.type, running)) {
      selection.full = true;
      target.deferred.add(q, target.entryOf(row.type), scan);
      return left(scan);
    }
    if (plan.isClosed) return 'stop';
    const judged = limits.isFull ? 'stop' : limits.judge(row);
    if (judged) return judged;
    const suspect = hasCrashed(row);
    const chars = row.body.length + q.store.checkpoints.sizeOf(row.key);
    const crowded = chars > selection.chars && selection.chars < MAX_CHARS_UNDER_WAY;
    if (crowded || (suspect && (plan.calls.length > 0 || target.isBusy(q)))) {
      // A suspect waits until nothing else runs at its target, and no later job passes it.
      selection.full = true;
      plan.close();
      return 'stop';
    }
    const readable = readableBody(row);
    if (readable) bodies.set(row.key, readable);
    const body = readable ?? emptyBody(row.type);
    const alone = suspect || (target.batchSize > 1 && travelsAlone(q, row, body));
    const timeoutMs = target.timeoutFor(q, body);
    if (!plan.add({ key: row.key, chars: chars + target.expectedAnswer, timeoutMs, alone })) return 'stop';
    selection.chars -= chars;
    target.count(row.type, running);
    limits.count(row);
    round.slots--;
    round.starts--;
    if (suspect) {
      selection.full = true;
      plan.close();
    }
    return 'take';
  }

  /** In a queue that belongs to handlers, a job that no pattern takes has no handler. */
  private findOrphans(now: number, selection: PushSelection): void {
    const { q } = this;
    const scan = q.store.cursors.ofTarget('');
    const found = selectReady(q.store, scan, now, 500, (row) => {
      const isNone = passOver(q, row, now, selection.expired) || targetOf(this.configs, q.name, row);
      return isNone ? left(scan) : 'take';
    });
    selection.unfinished ||= scan.unfinished;
    selection.orphans.push(...found);
  }

  /** No handler is registered: one attempt is counted, and the job becomes a dead letter. */
  private orphan(row: JobRow, now: number): void {
    const { q } = this;
    const [claimed] = grant(q, [row], { timeoutMs: () => 1_000, visibilityMs: () => 1_000 }, now);
    if (claimed) fail(q, row, claimed.active, { no_handler: true }, now, this.random);
  }

  private claimFor({ target, plan, bodies, chunks, selection, now }: Round, rows: JobRow[]): void {
    const { q } = this;
    const { id, workerId } = target;
    // The dispatcher's own timer ends an attempt. If the server ended it just as punctually, finished jobs would time
    // out while a sibling in the same call delays their answer.
    const leaseMs = (body: JobBody) => target.timeoutFor(q, body) + LEASE_BEYOND_TIMEOUT_MS;
    const together = chunks.length > 0 && { chunks: numbersOf(chunks) };
    const terms = { workerId, target: id, timeoutMs: leaseMs, visibilityMs: leaseMs, ...together };
    const claimed = grant(q, rows, terms, now, bodies);
    noteStarts(q, claimed, now);
    const byKey = new Map(claimed.map((job) => [job.row.key, job]));
    for (const { row, active } of claimed) if (hasCrashed(row)) active.solo = true;
    for (const keys of plan.calls) {
      const jobs = keys.flatMap((key) => byKey.get(key) ?? []);
      if (jobs.length > 0) selection.calls.push({ target, jobs });
    }
  }

  // ---- is there anything to push? Claims nothing -----------------------------------------------

  /** Is there a job ready for this target? Continues from its cursor, as far as one look may read. */
  private hasReadyFor(target: PushTarget, now: number): boolean | 'unfinished' {
    const { q } = this;
    if (target.deferred.entries.size > 0) return true;
    const scan = q.store.cursors.ofTarget(target.id);
    const fromStart = scan.due.size === 0;
    let passed = 0;
    let found = false;
    selectReady(q.store, scan, now, 1, (row) => {
      if (targetOf(this.configs, q.name, row) !== target.config) scan.exact = false;
      else if (!q.store.leases.active.has(row.key)) {
        found = true;
        return 'stop';
      }
      passed++;
      return 'pass';
    });
    // A few rows are cheaper to read again than to skip: that takes two more seeks.
    if (fromStart && passed < SHORT_WAY && scan.turns.size === 0) scan.due.clear();
    return found || (scan.unfinished && 'unfinished');
  }

  private hasTakeableFor(target: PushTarget, now: number): boolean {
    const { q } = this;
    if (hasChunk(q, target, now)) return true;
    const running = target.runningByEntry(q);
    const isOurs = (row: JobRow) => targetOf(this.configs, q.name, row) === target.config;
    const takes = (row: JobRow) => isOurs(row) && target.takes(row.type, running);
    const isDeferred = ({ type }: JobRow) => target.deferred.entries.has(target.entryOf(type));
    const cursor = q.store.cursors.ofTarget(target.id);
    if (this.finds(cursor, now, (row) => takes(row) && !isDeferred(row))) return true;
    return [...target.deferred.entries].some((entry) => {
      const scan = target.deferred.scanOf(q, entry);
      return this.finds(scan, now, (row) => takes(row) && target.entryOf(row.type) === entry);
    });
  }

  /**
   * Is there a ready job after this cursor that does not run and is `wanted`? Moves no cursor. If it cannot tell
   * without reading more than it may, there might be one.
   */
  private finds(from: Scan, now: number, wanted: (row: JobRow) => boolean): boolean {
    const { q } = this;
    if (q.store.gates.rules || from.hasBehind) return this.findsAhead(from, now, wanted);
    const scan = new Scan();
    scan.copy(from);
    const found = selectReady(q.store, scan, now, 1, (row) =>
      !q.store.leases.active.has(row.key) && wanted(row) ? 'take' : 'pass',
    );
    return found.length > 0 || scan.unfinished;
  }

  /** {@link finds}, where the cursor knows jobs that it has passed, and keeps what it reads ahead. */
  private findsAhead(scan: Scan, now: number, wanted: (row: JobRow) => boolean): boolean {
    const { active } = this.q.store.leases;
    let found = false;
    selectReady(this.q.store, scan, now, 1, (row) => {
      if (active.has(row.key)) return 'pass';
      found = wanted(row);
      return found ? 'stop' : 'hold';
    });
    return found || scan.unfinished;
  }
}

/** Leaves a job to another cursor: by this one it cannot be said what is before its place. */
function left(scan: Scan): Verdict {
  scan.exact = false;
  return 'pass';
}
