/** Unique jobs: never two of one fingerprint that have not ended; duplicates were told of a job that was there. */
import { SLACK_MS, TERMINAL } from './facts.mjs';

/** @param look `{ ledger, facts, found }` */
export function checkUnique({ ledger, facts, found }, fail) {
  const byFingerprint = new Map();
  const byId = new Map();
  for (const [token, jobs] of found) {
    const fingerprint = facts.jobs.get(token)?.fingerprint;
    if (fingerprint === undefined) continue;
    byFingerprint.set(fingerprint, [...(byFingerprint.get(fingerprint) ?? []), ...jobs]);
    for (const job of jobs) byId.set(job.id, { fingerprint, job });
  }
  const entries = new Map(ledger.uniques.map((entry) => [entry.token, entry]));
  for (const [fingerprint, jobs] of byFingerprint) {
    const isAcross = fingerprint.startsWith('across');
    // Across queues two clocks are compared.
    checkApart(jobs, isAcross ? SLACK_MS : 0, (message, [earlier, job]) => {
      const entry = entries.get(job.token);
      if ((isAcross || entry?.batch) && tookItsPlace(earlier, entry, facts.runs.get(job.token))) return;
      fail('unique', `${fingerprint}: ${message}`, { earlier, job, entry });
    });
  }
  const replacing = new Set(
    ledger.uniques
      .filter(
        ({ conflict, outcome }) => conflict.startsWith('replace') && outcome !== 'refused' && outcome !== 'unsent',
      )
      .map(({ fingerprint }) => fingerprint),
  );
  for (const { fingerprint, job } of byId.values()) {
    if (job.state !== 'cancelled' || facts.jobs.get(job.token).origin !== 'unique') continue;
    if (!replacing.has(fingerprint)) fail('state', `${job.token} was cancelled, and nothing replaced it`, { job });
  }
  for (const entry of ledger.uniques) checkDuplicate(entry, byId, fail);
}

/**
 * A job that replaces one of another queue, or in a batch, is written before that one is cancelled, and hidden until the
 * enqueue is decided: it neither runs nor is its enqueue answered before the other one has ended.
 */
function tookItsPlace(earlier, entry, runs = []) {
  if (!TERMINAL.has(earlier.state) || !entry?.conflict.startsWith('replace')) return false;
  if (entry.outcome === 'accepted' && earlier.endedAt > entry.answeredAt + SLACK_MS) return false;
  return !runs.some(({ startedAt }) => startedAt < earlier.endedAt - SLACK_MS);
}

/** A job that was refused or ignored: the one it was told of was there at that time. */
function checkDuplicate(entry, byId, fail) {
  const { token, fingerprint, outcome, existing, sentAt, answeredAt } = entry;
  if (outcome !== 'rejected' && outcome !== 'ignored') return;
  const known = byId.get(existing);
  const bad = (message) => fail('duplicate', `${token} was ${outcome} for ${existing}, ${message}`, { entry, known });
  if (!known) return bad('which does not exist');
  if (known.fingerprint !== fingerprint) return bad('which is another job');
  if (known.job.createdAt > answeredAt + SLACK_MS) bad('which came later');
  if (TERMINAL.has(known.job.state) && known.job.endedAt < sentAt - SLACK_MS) bad('which had ended');
}

/** No two of these jobs existed unended at the same time. */
export function checkApart(jobs, slackMs, bad) {
  let earlier;
  for (const job of [...jobs].sort((a, b) => a.createdAt - b.createdAt || endOf(a) - endOf(b))) {
    if (earlier && job.createdAt < endOf(earlier) - slackMs) {
      bad(`${job.token} came while ${earlier.token} had not ended`, [earlier, job]);
    }
    if (!earlier || endOf(job) > endOf(earlier)) earlier = job;
  }
}

const endOf = ({ state, endedAt }) => (TERMINAL.has(state) ? endedAt : Number.POSITIVE_INFINITY);

/** After the last restart nothing stands in the way of a fingerprint but a job that has not ended. */
export function checkFresh({ fresh, jobs, audits }, fail) {
  const fingerprints = new Map(jobs.map(({ token, fingerprint }) => [token, fingerprint]));
  const last = Object.values(audits.at(-1)?.queues ?? {}).flatMap((queue) => queue.jobs);
  for (const entry of fresh) {
    if (entry.status === 201) continue;
    const job = entry.status === 409 && last.find(({ id }) => id === entry.existing);
    const isAlive = job && !TERMINAL.has(job.state) && fingerprints.get(job.token) === entry.fingerprint;
    if (!isAlive) fail('leak', `${entry.fingerprint} is not free, and nobody has it`, { entry, job });
  }
}
