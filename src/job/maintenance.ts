/** Maintenance: for a time queues hand out no jobs and schedules do not fire. It ends by comparison with the clock. */
import { cut } from './text';
import { formatInstant } from './time';

/** Maintenance that an operator declared. Times in epoch ms. */
export interface Maintenance {
  started_at: number;
  /** Absent: until an operator ends it. */
  ends_at?: number;
  reason?: string;
}

/** What an operator says of it; when it began is for the directory to know. */
export type MaintenanceNotice = Omit<Maintenance, 'started_at'>;

/** Until when queues are shut, epoch ms: Infinity without an end, -Infinity when there is none. */
export function shutUntil(maintenance: Maintenance | undefined): number {
  return maintenance ? (maintenance.ends_at ?? Number.POSITIVE_INFINITY) : Number.NEGATIVE_INFINITY;
}

/** The maintenance that holds at `now` (epoch ms), if any does. */
export function holdingMaintenance(maintenance: Maintenance | undefined, now: number): Maintenance | undefined {
  return now < shutUntil(maintenance) ? maintenance : undefined;
}

/** Characters of the reason that an explanation repeats. */
const MAX_REASON = 200;

export function tellMaintenance({ reason, ends_at }: Maintenance): string {
  const why = reason === undefined ? '' : ` (${cut(reason, MAX_REASON)})`;
  const end = ends_at === undefined ? 'until an operator ends it' : `until ${formatInstant(ends_at)}`;
  return `The deployment is in maintenance ${end}${why}, and no job starts.`;
}
