/** Jobs that may take a call down, and with it all other jobs in the call. */
import type { JobBody } from '../../job/record';
import type { JobRow } from '../store/job-row';
import type { Configured } from '../store/parts';
import { historyOf } from '../store/row-texts';

/** Errors after which a job is suspected of having killed its handler Worker. */
const CRASH_TYPES = new Set(['tocsin.crash', 'tocsin.batch_crash']);

/** Errors after which a job is suspected of having taken its call down. */
const SUSPECT_TYPES = new Set([...CRASH_TYPES, 'timeout', 'tocsin.visibility_timeout']);

/** Did the last attempt end with the death of the handler Worker? Its calls then lose attempts, so it runs alone. */
export const hasCrashed = (row: JobRow): boolean => hasEndedBy(row, CRASH_TYPES);

/** A call that dies costs all its jobs an attempt: a suspect, or a job on its last attempt, does not share one. */
export function travelsAlone({ config }: Configured, row: JobRow, body: JobBody): boolean {
  if (hasEndedBy(row, SUSPECT_TYPES)) return true;
  return row.attempt + 1 >= config.policyFor(row.type, body).max_attempts;
}

/** Did the last attempt end with an error of one of these types? Most histories are not read for that. */
function hasEndedBy({ attempt, history }: JobRow, types: ReadonlySet<string>): boolean {
  if (attempt === 0 || history === null) return false;
  const mayHave = [...types].some((type) => history.includes(JSON.stringify(type)));
  return mayHave && types.has(historyOf({ history }).error?.type ?? '');
}
