/** Checks whether there is anything to push, without claiming it. */
import type { TargetConfig } from '../../../dispatch/config';
import type { JobRow } from '../../store/job-row';
import type { StoredQueue } from '../../store/parts';
import { selectReady } from '../../store/ranks';
import { Scan } from '../../store/scan';
import { hasChunk } from './chunked';
import { targetOf } from './destination';
import type { PushTarget } from './target';

/** Rows of the due index that are read again rather than remembered. */
const SHORT_WAY = 16;

export class ReadyCheck {
  constructor(
    private readonly q: StoredQueue,
    private readonly configs: readonly TargetConfig[],
  ) {}

  /** Is there a job ready for this target? Continues from its cursor, as far as one look may read. */
  hasReadyFor(target: PushTarget, now: number): boolean | 'unfinished' {
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

  /** Is there a job that one of these targets would be given, or asked about? */
  hasTakeable(targets: readonly PushTarget[], now: number): boolean {
    const { q } = this;
    const able = targets.filter((target) => target.health.allows(now) && target.room(q) > 0);
    return able.some((target) => this.hasTakeableFor(target, now));
  }

  hasOrphan(now: number): boolean {
    return this.finds(this.q.store.cursors.ofTarget(''), now, (row) => !targetOf(this.configs, this.q.name, row));
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

  /** The same where the cursor knows jobs that it has passed, and keeps what it reads ahead. */
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
