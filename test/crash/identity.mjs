/** Which job of the ledger a job on the wire is. `handler.ts` does the same. */

/**
 * Jobs carry the token they were made up with. Those of a cron entry share one, and are told apart by the moment they stand
 * for; one that was triggered by hand stands for none. A job that undoes another is named after it.
 */
export function tokenOf({ id, args, meta }) {
  if (meta?.undo_of !== undefined) return undoTokenOf(args[0].job.args[0].token);
  const token = args?.[0]?.token;
  return meta?.cron_name === undefined ? token : `${token}@${meta.cron_scheduled_at ?? `by hand ${id}`}`;
}

/** The token of the job that undoes the one with this token. */
export const undoTokenOf = (token) => `${token}~undo`;

/** Lives begun before the present one: each redrive says how many there were. */
export const lifeOf = ({ meta }) => meta?.life ?? 0;

/** What the checker judges of the results a job was given: whose they are. */
export function briefly(results) {
  if (Array.isArray(results)) return results.map(briefly);
  return results && typeof results === 'object'
    ? { token: results.token, attempt: results.attempt }
    : (results ?? null);
}
