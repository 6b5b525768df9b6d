/** Each job by itself: it exists once, ended as it had to, and tells what happened to it. */
import { SLACK_MS, TERMINAL } from './facts.mjs';

/** Accepted jobs are there, refused ones are not, and none is there twice. */
export function checkExistence(facts, found, fail) {
  for (const [token, id] of facts.accepted) {
    const jobs = found.get(token) ?? [];
    const evidence = { job: facts.jobs.get(token), jobs };
    if (jobs.length === 0) fail('lost', `the accepted job ${token} is gone`, evidence);
    else if (id !== undefined && jobs[0].id !== id) fail('identity', `${token} was accepted as ${id}`, evidence);
  }
  for (const [token, jobs] of found) {
    if (jobs.length > 1) fail('doubled', `${token} exists ${jobs.length} times`, jobs);
    const outcomes = facts.outcomes.get(token);
    if (!facts.jobs.has(token)) fail('unknown', `nobody enqueued ${token}`, jobs);
    else if (outcomes?.every((outcome) => outcome === 'refused' || outcome === 'unsent')) {
      fail('refused', `${token} exists although its enqueue was ${outcomes}`, jobs);
    }
    for (const job of jobs) {
      const queue = facts.jobs.get(token)?.queue;
      if (queue !== undefined && job.queue !== queue) fail('identity', `${token} is in another queue`, job);
    }
  }
}

/** Accepted batches are covered job by job; of the others there must be all or nothing. */
export function checkBatches(ledger, found, fail) {
  for (const { tokens, outcome } of ledger.enqueues) {
    if (outcome !== 'unknown' || tokens.length < 2) continue;
    const missing = tokens.filter((token) => !found.has(token));
    if (missing.length === 0 || missing.length === tokens.length) continue;
    fail('half batch', `of a batch of ${tokens.length} jobs ${missing.length} are missing`, { tokens, missing });
  }
}

/** One job against what was asked, reported and answered. */
export function checkJob(facts, job, seen, fail) {
  const { token } = job;
  const runs = facts.runs.get(token) ?? [];
  const reports = facts.reports.get(token) ?? [];
  const changes = facts.changes.get(token) ?? [];
  const evidence = { job, seen, runs, reports, changes };
  const bad = (rule, message) => fail(rule, `${token}: ${message}`, evidence);
  const changed = (kind, ...outcomes) => changes.some((c) => c.kind === kind && outcomes.includes(c.outcome));

  if (changed('cancel', 'accepted') && seen.state !== 'cancelled') bad('cancel', `cancelled, but it is ${seen.state}`);
  if (seen.state === 'cancelled') {
    // What else may cancel a job is judged with its subject.
    if (!job.cancelledBy && !changed('cancel', 'accepted', 'unknown')) bad('state', 'cancelled by nobody');
  } else if (job.parked && job.released !== 'accepted') {
    if (seen.state !== 'scheduled' && !job.released) bad('state', `should still be scheduled, is ${seen.state}`);
  } else if (job.pending && !changed('activate', 'accepted')) {
    if (seen.state !== 'pending' && !changed('activate', 'unknown'))
      bad('state', `should be pending, is ${seen.state}`);
  } else if (!TERMINAL.has(seen.state)) bad('state', `should have ended, is ${seen.state}`);
  checkSchedule(job, seen, bad);
  // Judged elsewhere: life by life, step by step, and family by family.
  if (['redriven', 'durable', 'children'].includes(job.origin)) return;

  if (seen.attempt > job.maxAttempts) bad('attempts', `attempt ${seen.attempt} of at most ${job.maxAttempts}`);
  if (runs.length > seen.attempt) bad('attempts', `ran ${runs.length} times, but counts ${seen.attempt} attempts`);
  const latest = Math.max(0, ...runs.map(({ attempt }) => attempt));
  if (latest > seen.attempt) bad('attempts', `attempt ${latest} ran, but only ${seen.attempt} are counted`);

  for (const report of reports) {
    if (report.outcome !== 'accepted') continue;
    if (report.kind === 'ack') {
      if (seen.state !== 'completed' || seen.attempt !== report.attempt) {
        bad('completion', `attempt ${report.attempt} was acknowledged as completed, but it is ${seen.state}`);
      } else if (report.answer?.completed_at && Date.parse(report.answer.completed_at) !== seen.endedAt) {
        bad('completion', 'completed_at is not what the ack was told');
      }
    } else if (report.kind === 'nack') {
      const entry = seen.errors.find(({ attempt }) => attempt === report.attempt);
      // Where the execution limit had ended the attempt already, the answer told of that.
      const told = entry?.message === `planned ${token} ${report.attempt}` || entry?.code === 'timeout';
      if (!told) {
        bad('nack', `the acknowledged failure of attempt ${report.attempt} is not in the history`);
      }
    }
  }
  if (seen.state === 'completed') checkCompleted(job, seen, runs, reports, bad);
  if (seen.state === 'discarded') checkDiscarded(job, seen, runs, bad);
  checkHistory(seen, reports, bad);
}

/** A time asked for is kept, unless it had passed when the job arrived: that means now. */
function checkSchedule({ notBefore, relative }, { scheduledAt, createdAt }, bad) {
  if (notBefore === undefined) return;
  if (scheduledAt === undefined) {
    if (createdAt < notBefore) bad('schedule', 'lost its scheduled_at');
  } else if (relative ? scheduledAt < notBefore - SLACK_MS : scheduledAt !== notBefore) {
    bad('schedule', `is scheduled ${scheduledAt - notBefore} ms from the time asked for`);
  }
}

function checkCompleted(job, seen, runs, reports, bad) {
  const run = runs.find(({ attempt }) => attempt === seen.attempt);
  if (!run) return bad('completion', `completed in attempt ${seen.attempt}, which nobody ran`);
  if (run.outcome !== 'success') bad('completion', `completed in attempt ${seen.attempt}, which ended: ${run.outcome}`);
  const acked = reports.some(({ kind, attempt }) => kind === 'ack' && attempt === seen.attempt);
  if (run.via === 'pull' && !acked) bad('completion', `completed without an ack of attempt ${seen.attempt}`);
  const { token, attempt } = seen.result ?? {};
  if (token !== job.token || attempt !== seen.attempt) bad('completion', 'holds the result of another run');
}

function checkDiscarded(job, seen, runs, bad) {
  if (seen.attempt >= job.maxAttempts) return;
  const run = runs.find(({ attempt }) => attempt === seen.attempt);
  if (run?.outcome !== 'fatal') bad('state', `discarded after attempt ${seen.attempt} of ${job.maxAttempts}`);
}

/** Every attempt that did not complete left one entry, in order; only one that was given back leaves none. */
function checkHistory(seen, reports, bad) {
  const attempts = seen.errors.map(({ attempt }) => attempt);
  if (attempts.some((attempt, at) => at > 0 && attempt <= attempts[at - 1])) {
    bad('history', `the error history is out of order: ${attempts}`);
  }
  const last = seen.state === 'discarded' ? seen.attempt : seen.attempt - 1;
  const returned = new Set(
    reports.filter(({ kind, outcome }) => kind === 'requeue' && outcome !== 'refused').map(({ attempt }) => attempt),
  );
  for (let attempt = 1; attempt <= last; attempt++) {
    if (!attempts.includes(attempt) && !returned.has(attempt)) bad('history', `attempt ${attempt} left no entry`);
  }
  if (attempts.some((attempt) => attempt > seen.attempt))
    bad('history', 'an entry names an attempt that is not counted');
}
