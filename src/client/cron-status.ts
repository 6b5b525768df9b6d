/** Schedules as the server shows them, in wire names. Times are RFC 3339. */
import type * as contract from '../contract/cron';
import type { Named } from '../producer/names';
import { member, shaped } from './answers';

export type CronStatus = Named<contract.CronStatus>;

export type CronExecution = Named<contract.CronExecution>;

/** A fire, or several in a row, that enqueued nothing. */
export type CronSkipped = Named<contract.CronSkipped>;

/** Recent fires of a schedule, the latest first. */
export type CronHistory = Pick<Named<contract.CronHistory>, 'executions' | 'skipped'>;

/** The schedule in an answer about one schedule. @throws {UnavailableError} */
export function cronOf(answer: unknown): CronStatus {
  return shaped<CronStatus>(member(answer, 'cron'), 'name', 'the entry');
}
