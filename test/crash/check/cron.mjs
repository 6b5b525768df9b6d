/** Cron entries: each moment fires once, at its time, as the policies say, and the books agree with the jobs. */
import { SLACK_MS } from './facts.mjs';
import { checkApart } from './unique.mjs';

/** The last executions that a history shows. */
const KEPT = 50;

/** @param look `{ ledger, audit }` */
export function checkCrons({ ledger, audit }, fail) {
  const all = Object.values(audit.queues).flatMap(({ jobs }) => jobs);
  for (const entry of ledger.crons) {
    const jobs = all
      .filter(({ cron }) => cron === entry.name)
      .sort((a, b) => a.createdAt - b.createdAt || a.tick - b.tick);
    const view = audit.crons.find(({ name }) => name === entry.name);
    const changes = ledger.cronChanges.filter(({ name }) => name === entry.name);
    const scheduled = jobs.filter(({ tick }) => tick !== undefined);
    const ticks = scheduled.map(({ tick }) => tick).sort((a, b) => a - b);
    const bad = (rule, message, more) => fail(rule, `cron ${entry.name}: ${message}`, { entry, view, ...more });
    checkTicks(entry, ticks, scheduled, bad);
    if (entry.overlap !== 'allow') checkApart(scheduled, 0, (message, two) => bad('cron overlap', message, { two }));
    checkMissed(entry, ticks, ledger.downs, bad);
    checkPauses(scheduled, changes, bad);
    checkSteady(entry, ticks, view?.full ?? [], changes, bad);
    checkBooks(view, jobs, scheduled, bad);
    for (const { kind, jobId } of changes) {
      if (kind !== 'trigger' || jobId === undefined) continue;
      const job = jobs.find(({ id }) => id === jobId);
      if (!job || job.tick !== undefined) bad('lost', `the job ${jobId}, triggered by hand, is gone`, { job });
    }
  }
}

/** Each moment once, all on the entry's beat, no job before its moment. */
function checkTicks({ intervalMs, job: { fingerprint } }, ticks, scheduled, bad) {
  for (const [at, tick] of ticks.entries()) {
    if (at === 0) continue;
    if (tick === ticks[at - 1]) bad('cron double', `${new Date(tick).toISOString()} fired twice`);
    else if ((tick - ticks[0]) % intervalMs !== 0) bad('cron time', `${new Date(tick).toISOString()} is off its beat`);
  }
  for (const job of scheduled) {
    if (job.createdAt < job.tick) bad('cron time', `${job.token} came ${job.tick - job.createdAt} ms early`, { job });
  }
  const order = scheduled.map(({ tick }) => tick);
  if (fingerprint === undefined && order.some((tick, at) => tick < order[at - 1])) {
    bad('cron time', 'fires are out of order', { order });
  }
}

/** Of the moments when there was no server, as many fire as the policy allows. */
function checkMissed({ missed, maxCatchup }, ticks, downs, bad) {
  const most = missed === 'fire_all' ? maxCatchup : 1;
  for (const { from, until } of downs) {
    const made = ticks.filter((tick) => tick >= from && tick <= until);
    if (made.length > most)
      bad('cron missed', `${made.length} fires were made up for, not ${most}`, { made, from, until });
  }
}

/** While an entry is paused nothing fires, and nothing of that time is made up for. */
function checkPauses(scheduled, changes, bad) {
  for (const { kind, outcome, answeredAt } of changes) {
    if (kind !== 'pause' || outcome !== 'accepted') continue;
    const resumes = changes.filter((change) => change.kind === 'resume').map(({ sentAt }) => sentAt);
    const end = Math.min(...resumes.filter((sentAt) => sentAt >= answeredAt));
    const job = scheduled.find(({ tick }) => tick > answeredAt + SLACK_MS && tick < end - SLACK_MS);
    if (job) bad('cron pause', `${job.token} fired although the entry was paused`, { job, answeredAt });
  }
}

/** Where nothing may be left out, nothing is: from the first beat to the last one before the entry was paused. */
function checkSteady({ intervalMs, overlap, missed, maxCatchup, job, answeredAt }, ticks, full, changes, bad) {
  const isPaused = changes.some(({ kind, final }) => kind === 'pause' && !final);
  const isBounded = missed === 'fire_all' && maxCatchup < 100;
  if (isPaused || isBounded || overlap === 'skip' || job.fingerprint !== undefined) return;
  const end = changes.find(({ final }) => final);
  if (!end) return;
  if (ticks.length === 0) return bad('cron lost', 'never fired');
  // Pausing drops what waits for a job to end.
  if (overlap !== 'enqueue' && ticks.at(-1) < end.sentAt - intervalMs - SLACK_MS) bad('cron lost', 'stopped firing');
  if (missed !== 'fire_all') return;
  if (ticks[0] > answeredAt + intervalMs + SLACK_MS) bad('cron lost', 'the first beats did not fire');
  for (const [at, tick] of ticks.entries()) {
    const before = at === 0 ? tick - intervalMs : ticks[at - 1];
    const beats = Array.from({ length: (tick - before) / intervalMs - 1 }, (_, n) => before + (n + 1) * intervalMs);
    const lost = beats.filter((beat) => !full.some(([from, until]) => beat >= from && beat <= until));
    if (lost.length > 0) bad('cron lost', `${lost.length} beats before ${new Date(tick).toISOString()} are missing`);
  }
}

/** Counters and history are those of the jobs. */
function checkBooks(view, jobs, scheduled, bad) {
  if (view.runs !== jobs.length) bad('cron books', `counts ${view.runs} runs, and has ${jobs.length} jobs`);
  if (view.fires !== scheduled.length)
    bad('cron books', `counts ${view.fires} fires, and has ${scheduled.length} jobs`);
  const byId = new Map(jobs.map((job) => [job.id, job]));
  for (const { jobId, tick } of view.history) {
    const job = byId.get(jobId);
    if (!job) bad('cron books', `the history names ${jobId}, which does not exist`);
    else if (job.tick !== tick) bad('cron books', `the history has ${jobId} at another moment`, { job });
  }
  const different = new Set(view.history.map(({ jobId }) => jobId)).size;
  if (different !== Math.min(KEPT, jobs.length))
    bad('cron books', `the history shows ${different} of ${jobs.length} jobs`);
}
