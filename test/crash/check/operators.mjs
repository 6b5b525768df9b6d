/** What operators were told holds: pauses, second lives, changes, and cancellations by filter. */
import { grouped, SLACK_MS, TERMINAL } from './facts.mjs';

/** @param look `{ ledger, facts, audit, found }` */
export function checkOperators(look, fail) {
  checkPauses(look, fail);
  checkRedrives(look, fail);
  checkChanges(look, fail);
  checkCampaigns(look, fail);
}

/** From the answer to a pause until the next resume is sent, no run begins. */
function checkPauses({ ledger, facts }, fail) {
  for (const { queue, kind, outcome, answeredAt } of ledger.pauses) {
    if (kind !== 'pause' || outcome !== 'accepted') continue;
    // In the end several resume, and not in the order in which they meant to.
    const resumes = ledger.pauses.filter((next) => next.queue === queue && next.kind === 'resume');
    const end = Math.min(...resumes.map(({ sentAt }) => sentAt).filter((sentAt) => sentAt >= answeredAt));
    for (const run of ledger.runs) {
      if (facts.jobs.get(run.token)?.queue !== queue) continue;
      if (run.startedAt > answeredAt + SLACK_MS && run.startedAt < end - SLACK_MS) {
        fail('pause', `${run.token} began in ${queue} while it was paused`, { run, answeredAt, end });
      }
    }
  }
}

/** Each redrive that was acknowledged gave one more life, and nothing else did. */
function checkRedrives({ ledger, facts, found }, fail) {
  const redrives = grouped(ledger.redrives);
  for (const job of facts.jobs.values()) {
    const seen = job.origin === 'redriven' && found.get(job.token)?.[0];
    if (!seen) continue;
    const given = redrives.get(job.token) ?? [];
    const runs = facts.runs.get(job.token) ?? [];
    const reports = facts.reports.get(job.token) ?? [];
    const bad = (message) => fail('redrive', `${job.token}: ${message}`, { job, seen, given, runs, reports });
    checkLives(seen, given, bad);
    checkEnd(job, seen, bad);
    checkErrors(job, seen, reports, bad);
    for (const [, same] of grouped(runs, ({ life, attempt }) => `${life} ${attempt}`)) {
      if (same.length > 1) bad(`attempt ${same[0].attempt} of life ${same[0].life} ran ${same.length} times`);
    }
    for (const run of runs) {
      if (run.attempt > job.maxAttempts) bad(`attempt ${run.attempt} of life ${run.life} is too many`);
      if (run.life > seen.life) bad(`ran in life ${run.life}, and has ${seen.life}`);
      const asked = given.filter(({ life }) => life === run.life).map(({ sentAt }) => sentAt);
      if (run.life > 0 && !asked.some((at) => run.startedAt > at - SLACK_MS)) bad(`life ${run.life} began too early`);
    }
  }
}

function checkLives(seen, given, bad) {
  const accepted = given.filter(({ outcome }) => outcome === 'accepted').map(({ life }) => life);
  if (new Set(accepted).size !== accepted.length) bad('one life was given twice');
  const least = Math.max(0, ...accepted);
  if (seen.life < least) bad(`was given life ${least}, and has ${seen.life}`);
  for (let life = 1; life <= seen.life; life++) {
    const asked = given.some((one) => one.life === life && (one.outcome === 'accepted' || one.outcome === 'unknown'));
    if (!asked) bad(`nobody gave it life ${life}`);
  }
}

/** It dies in every life until the one that saves it. */
function checkEnd({ plan, maxAttempts }, seen, bad) {
  const isSaved = plan.saved_in !== undefined && seen.life >= plan.saved_in;
  if (isSaved ? seen.state === 'completed' : seen.state === 'discarded' && seen.attempt === maxAttempts) return;
  // Every attempt of a saving life may have been cut off.
  if (isSaved && seen.state === 'discarded' && seen.attempt === maxAttempts) return;
  bad(`is ${seen.state} after attempt ${seen.attempt} of life ${seen.life}`);
}

/** Every attempt of every life left one entry, unless it completed or was given back. */
function checkErrors({ maxAttempts }, seen, reports, bad) {
  const most = seen.life * maxAttempts + (seen.state === 'completed' ? seen.attempt - 1 : seen.attempt);
  const returned = reports.filter(({ kind, outcome }) => kind === 'requeue' && outcome !== 'refused').length;
  const count = seen.errors.length;
  if (count > most || count < most - returned) bad(`has ${count} errors; ${seen.life + 1} lives leave ${most}`);
}

/** The last acknowledged change of a job is in force, or one after it that was cut off. */
function checkChanges({ ledger, found }, fail) {
  for (const [token, all] of grouped(ledger.patches)) {
    const patches = all.filter(({ change }) => change.tags !== undefined);
    const last = patches.findLastIndex(({ outcome }) => outcome === 'accepted');
    const seen = found.get(token)?.[0];
    if (last < 0 || !seen) continue;
    const allowed = patches.slice(last).filter(({ outcome }) => outcome === 'accepted' || outcome === 'unknown');
    const holds = ({ change }) => change.priority === seen.priority && change.tags.join() === seen.tags?.join();
    if (!allowed.some(holds)) fail('change', `${token} is not as it was changed`, { seen, patches });
  }
}

/** A cancellation by filter comes to its end in every queue that has it; all have one that was acknowledged. */
function checkCampaigns({ ledger, facts, audit, found }, fail) {
  const enqueues = ledger.enqueues.filter(({ tokens }) => facts.jobs.get(tokens[0])?.campaign !== undefined);
  for (const { campaign, operation, outcome, sentAt, matchedNothing } of ledger.bulks) {
    const own = enqueues.filter(({ tokens }) => facts.jobs.get(tokens[0]).campaign === campaign);
    const seen = own.flatMap(({ tokens }) => tokens).flatMap((token) => found.get(token) ?? []);
    const cancelled = seen.filter(({ state }) => state === 'cancelled');
    const view = audit.operations.find((one) => one.operation === operation);
    const figures = { campaign, outcome, sentAt, view, jobs: seen.length, cancelled: cancelled.length };
    const bad = (message) => fail('bulk', `${campaign}: ${message}`, figures);
    if (outcome === 'refused' || outcome === 'unsent') {
      if (cancelled.length > 0) bad(`${cancelled.length} jobs were cancelled by nobody`);
      continue;
    }
    for (const [queue, jobs] of grouped(seen, (job) => job.queue)) {
      const open = jobs.filter(({ state }) => !TERMINAL.has(state)).length;
      if (outcome === 'accepted' ? open > 0 : open > 0 && open < jobs.length) {
        bad(`${open} of ${jobs.length} jobs in ${queue} were not cancelled`);
      }
    }
    if (outcome !== 'accepted' || matchedNothing) continue;
    if (!view?.completed) bad('the operation has not ended');
    else if (view.succeeded !== cancelled.length || view.failed !== 0) {
      bad(`${view.succeeded} jobs are said to be cancelled, ${view.failed} to have failed; ${cancelled.length} are`);
    }
  }
  const named = new Set(ledger.bulks.map(({ campaign }) => campaign));
  for (const [token, [job]] of found) {
    const { campaign } = facts.jobs.get(token) ?? {};
    if (campaign === undefined || named.has(campaign) || job.state !== 'cancelled') continue;
    fail('bulk', `${token} was cancelled, and its campaign never was`, job);
  }
}
