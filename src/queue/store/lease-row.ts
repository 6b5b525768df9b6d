import { parseStored } from '../../durable/sql';
import { type Active, NEVER } from './active';
import type { SingleRow } from './singles';

export interface LeaseRow {
  w?: string;
  /** Target, when pushed. */
  t?: string;
  /** Start of the attempts. */
  s: number;
  /** Head of the line of immediate jobs. */
  h: number;
  /** Next sequence number. */
  q: number;
  /** [key, claim, attempt, expiresAt, visibilityMs, timeoutAt, indexed, type]; older rows may have a ninth member. */
  e: [number, number, number, number, number, number, 0 | 1, string][];
  /** What the queue has counted recently: it rides along. */
  m?: object;
  /** The groups of the jobs, in the order of `e`; empty: it has none. Absent: none has one. */
  g?: string[];
  /** The chunks of the jobs, in the order of `e`, numbered from 1; 0: it runs by itself. Absent: all do. */
  c?: number[];
  /** The places of the jobs in chunks of strict groups, in the order of `e`; 0: it has none. Absent: none has one. */
  p?: number[];
}

export const leasedBy = ({ e: [entry] }: LeaseRow): SingleRow['leased'] => entry && { key: entry[0], type: entry[7] };

export function readLease(data: string): LeaseRow | undefined {
  const lease = parseStored(data) as Partial<LeaseRow> | null | undefined;
  const readable =
    [lease?.s, lease?.h, lease?.q].every(Number.isSafeInteger) &&
    Array.isArray(lease?.e) &&
    lease.e.every((entry) => Array.isArray(entry) && entry.slice(0, 6).every(Number.isSafeInteger));
  return readable ? (lease as LeaseRow) : undefined;
}

/** A running attempt from its lease row; without a `pushed` call under way the end of the lease ends it. */
export function restored(
  leaseId: number,
  lease: LeaseRow,
  index: number,
  limitKey: string | null,
  pushed: Active | undefined,
): Active {
  const entry = lease.e[index] as LeaseRow['e'][number];
  const [key, claim, attempt, expiresAt, visibilityMs, timeoutAt, indexed, type] = entry;
  const [group, chunk, place] = [lease.g?.[index], lease.c?.[index], lease.p?.[index]];
  const isPushed = lease.t !== undefined;
  const underWay = pushed?.claim === claim ? pushed : undefined;
  return {
    ...{ key, type, claim, attempt, leaseId, startedAt: lease.s, expiresAt, visibilityMs, indexed: indexed === 1 },
    timeoutAt: isPushed && !underWay ? NEVER : timeoutAt,
    ...(lease.w !== undefined && { workerId: lease.w }),
    ...(isPushed && { target: lease.t as string }),
    ...(isPushed && !underWay && { orphaned: true as const }),
    ...(underWay?.solo && { solo: true as const }),
    ...(limitKey !== null && { limitKey }),
    ...(typeof group === 'string' && group !== '' && { group }),
    ...(typeof chunk === 'number' && chunk > 0 && { chunk }),
    ...(typeof place === 'number' && place > 0 && { place }),
  };
}

/** The text of a lease row for attempts that began together. @param metersText JSON carried along */
export function leaseText(
  entries: readonly Active[],
  { head, nextSequence }: { head: number; nextSequence: number },
  metersText: string,
): string {
  const [first] = entries as [Active];
  const row: LeaseRow = {
    ...(first.workerId !== undefined && { w: first.workerId }),
    ...(first.target !== undefined && { t: first.target }),
    s: first.startedAt,
    h: head,
    q: nextSequence,
    e: entries.map((entry) => [
      entry.key,
      entry.claim,
      entry.attempt,
      entry.expiresAt,
      entry.visibilityMs,
      entry.timeoutAt,
      entry.indexed ? 1 : 0,
      entry.type,
    ]),
    ...(entries.some(({ group }) => group !== undefined) && { g: entries.map(({ group = '' }) => group) }),
    ...(entries.some(({ chunk }) => chunk !== undefined) && { c: entries.map(({ chunk = 0 }) => chunk) }),
    ...(entries.some(({ place }) => place !== undefined) && { p: entries.map(({ place = 0 }) => place) }),
  };
  return `${JSON.stringify(row).slice(0, -1)},"m":${metersText}}`;
}
