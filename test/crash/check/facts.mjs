/** What the checks have in common: the ledger by token, and what is known of times and states. */

/** Clocks of test and server are the same; a moment noted by the test lies within this of the server's, ms. */
export const SLACK_MS = 25;
/** A lease of a push outlives its time limit by this, ms, when a crash cut the call off. */
export const PUSH_GRACE_MS = 10_000;

export const TERMINAL = new Set(['completed', 'cancelled', 'discarded']);
export const STATES = [...['scheduled', 'available', 'pending', 'active', 'retryable'], ...TERMINAL];

/** @returns key → its entries; the key is the token unless told otherwise */
export function grouped(entries, keyOf = ({ token }) => token) {
  const groups = new Map();
  for (const entry of entries) {
    const group = groups.get(keyOf(entry));
    if (group) group.push(entry);
    else groups.set(keyOf(entry), [entry]);
  }
  return groups;
}

/** Everything by token. */
export function index(ledger) {
  const jobs = new Map(ledger.jobs.map((job) => [job.token, job]));
  const accepted = new Map();
  const outcomes = new Map();
  for (const { tokens, outcome, ids } of ledger.enqueues) {
    for (const [at, token] of tokens.entries()) {
      outcomes.set(token, [...(outcomes.get(token) ?? []), outcome]);
      if (outcome === 'accepted') accepted.set(token, ids?.[at]);
    }
  }
  addCronJobs(jobs, ledger);
  // In the order in which the server began them: the news of a run may overtake that of the run before.
  const begun = [...ledger.runs].sort((a, b) => a.startedAt - b.startedAt);
  const [runs, reports, changes] = [begun, ledger.reports, ledger.changes].map((entries) => grouped(entries));
  return { jobs, accepted, outcomes, runs, reports, changes, kills: ledger.kills };
}

/** Jobs of cron entries were not made up one by one: whatever there is of an entry is a job of its own. */
function addCronJobs(jobs, { crons, runs, audits }) {
  const entries = new Map(crons.map(({ job }) => [job.token, job]));
  const seen = audits.flatMap(({ queues }) => Object.values(queues).flatMap((queue) => queue.jobs));
  for (const { token } of [...runs, ...seen]) {
    const job = token !== undefined && !jobs.has(token) && entries.get(token.split('@')[0]);
    if (job) jobs.set(token, { ...job, token });
  }
}

/** token → the jobs that carry it; those without one under undefined. */
export function jobsByToken(audit) {
  return grouped(Object.values(audit.queues).flatMap(({ jobs }) => jobs));
}
