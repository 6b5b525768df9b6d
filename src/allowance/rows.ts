import type { DeclaredLimits, KeySettings } from '../rpc/allowances';

/** What is stored of one queue. Times in epoch ms of the desk. */
export interface HolderRow {
  session: number;
  /** Of the last request. */
  number: number;
  /** When that was. */
  asked: number;
  slots: number;
  leases: [number: number, until: number, count: number][];
  /** Until when it has, or had, the turn of a throttle, and in which session. */
  turn?: { until: number; session: number };
  /** It found nothing: since when it waits, until when its place is kept, and what for. */
  waits?: { since: number; until: number; slots: boolean; starts: boolean };
}

export interface KeyRow {
  declared?: DeclaredLimits;
  settings: KeySettings;
}

/** The two oldest leases count as one, until the later of their ends. */
export function mergeOldest(leases: HolderRow['leases']): void {
  leases.sort((a, b) => a[1] - b[1]);
  const [[, , first], second] = leases as [HolderRow['leases'][number], HolderRow['leases'][number]];
  // Under a number that no request has: nothing of it can be given back.
  leases.splice(0, 2, [0, second[1], first + second[2]]);
}
