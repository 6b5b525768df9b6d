/** The runs of each job: when they began, in which order, and what may follow what. */
import { PUSH_GRACE_MS, SLACK_MS } from './facts.mjs';

/** The runs of each job: in order, not before their time, never two at once, none after its end. */
export function checkRuns(facts, fail) {
  for (const [token, runs] of facts.runs) {
    const job = facts.jobs.get(token);
    const reports = facts.reports.get(token) ?? [];
    const changes = facts.changes.get(token) ?? [];
    const bad = (rule, message) =>
      fail(rule, `${token}: ${message}`, { job, runs, reports, changes, kills: facts.kills });
    if (!job) {
      bad('unknown', 'nobody enqueued the job that ran');
      continue;
    }
    const outcomes = facts.outcomes.get(token) ?? [];
    if (outcomes.length > 0 && outcomes.every((outcome) => outcome === 'refused' || outcome === 'unsent')) {
      bad('refused', 'ran although its enqueue was refused');
    }
    // The server may have read the request a moment after the client noted the time: never before.
    if (job.notBefore !== undefined && runs[0].startedAt < job.notBefore - SLACK_MS) bad('schedule', 'ran too early');
    for (const [at, run] of runs.entries()) {
      const earlier = runs[at - 1];
      if (!earlier || isNewLife(earlier, run)) continue;
      if (run.attempt <= earlier.attempt)
        bad('attempts', `attempt ${run.attempt} ran after attempt ${earlier.attempt}`);
      else checkHandover(facts, earlier, run, reports, bad);
    }
    for (const report of reports) {
      if (report.kind !== 'ack' || report.outcome !== 'accepted') continue;
      const later = runs.find((run) => run.attempt > report.attempt && lifeOf(run) === lifeOf(report));
      if (later) bad('completion', `attempt ${later.attempt} ran after attempt ${report.attempt} was acknowledged`);
    }
    for (const change of changes) {
      if (change.kind !== 'cancel' || change.outcome !== 'accepted') continue;
      if (runs.some(({ startedAt }) => startedAt > change.answeredAt + SLACK_MS))
        bad('cancel', 'ran after it was cancelled');
    }
  }
}

/** A job that was redriven starts again from its first attempt. */
const isNewLife = (one, other) => lifeOf(other) > lifeOf(one);
const lifeOf = ({ life = 0 }) => life;

/** A job may run again once the run before it has failed, was given back, or lost its lease; not earlier. */
function checkHandover(facts, earlier, run, reports, bad) {
  const report = reports.find(
    (one) =>
      one.attempt === earlier.attempt &&
      lifeOf(one) === lifeOf(earlier) &&
      one.kind !== 'ack' &&
      one.outcome !== 'refused',
  );
  if (report) {
    const next = report.answer?.next_attempt_at && Date.parse(report.answer.next_attempt_at);
    if (next !== undefined && run.startedAt < next) bad('retry', `attempt ${run.attempt} came before its time`);
    return;
  }
  if (earlier.via === 'push' && (earlier.outcome === 'failure' || earlier.outcome === 'fatal')) return;
  const end = leaseEnd(earlier, facts.kills);
  if (run.startedAt < end) {
    bad(
      'lease',
      `attempt ${run.attempt} began ${end - run.startedAt} ms before attempt ${earlier.attempt} lost its lease`,
    );
  }
}

/** The earliest moment at which a run's lease can have ended by itself. */
function leaseEnd({ via, startedAt, leaseMs, limitMs, beats }, kills) {
  if (via === 'pull') {
    const lease = Math.max(startedAt + leaseMs, ...beats.map((at) => at + leaseMs - SLACK_MS));
    // No heartbeat moves the execution limit.
    return limitMs === undefined ? lease : Math.min(lease, startedAt + limitMs);
  }
  // While the object lives, it ends a run at its time limit; after a crash only the lease does.
  const cutOff = kills.some((at) => at >= startedAt - SLACK_MS && at < startedAt + leaseMs);
  return startedAt + leaseMs + (cutOff ? PUSH_GRACE_MS : 0);
}
