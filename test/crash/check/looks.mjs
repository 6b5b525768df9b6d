/** Looks at the server: each agrees with itself, all agree, and what nobody touched went on by itself. */
import { jobsByToken, STATES, TERMINAL } from './facts.mjs';

/** The counts of each queue are those of its list. */
export function checkCounts({ queues, reads }, fail) {
  const listed = new Map();
  for (const [queue, { jobs, total, stats, dead, deadTotal }] of Object.entries(queues)) {
    const counts = Object.fromEntries(STATES.map((state) => [state, 0]));
    for (const job of jobs) {
      counts[job.state]++;
      listed.set(job.id, job);
    }
    for (const state of STATES) {
      if (stats[state] !== counts[state]) {
        fail('counts', `${queue}: stats count ${stats[state]} ${state}, listed are ${counts[state]}`, {
          stats,
          counts,
        });
      }
    }
    const depth = jobs.filter(({ state }) => !TERMINAL.has(state)).length;
    if (stats.depth !== depth) fail('counts', `${queue}: depth is ${stats.depth}, not ${depth}`, { stats, counts });
    if (total !== jobs.length) fail('counts', `${queue}: the list says ${total}, it shows ${jobs.length}`);
    if (stats.dead !== dead.length || deadTotal !== dead.length) {
      fail(
        'counts',
        `${queue}: ${dead.length} dead letters are listed, stats say ${stats.dead}, the list ${deadTotal}`,
      );
    }
    const discarded = new Set(jobs.filter(({ state }) => state === 'discarded').map(({ id }) => id));
    for (const id of dead) if (!discarded.has(id)) fail('counts', `${queue}: the dead letter ${id} is not discarded`);
  }
  for (const read of reads) {
    if (JSON.stringify(read) !== JSON.stringify(listed.get(read.id))) {
      fail('counts', `${read.token} reads differently alone and in the list`, { read, listed: listed.get(read.id) });
    }
  }
}

/** Nothing may change between two looks without work: the second one comes after a last crash. */
export function checkSameLooks(audits, fail) {
  const byId = (audit) => {
    const jobs = new Map();
    for (const job of [...jobsByToken(audit).values()].flat()) {
      jobs.set(job.id, [...(jobs.get(job.id) ?? []), JSON.stringify(job)].sort());
    }
    return jobs;
  };
  const [before, after] = [audits.at(-2), audits.at(-1)];
  if (!before || !after) return;
  for (const subject of ['workflows', 'crons', 'operations']) {
    for (const [at, entry] of before[subject].entries()) {
      const [first, second] = [entry, after[subject][at]].map((one) => JSON.stringify(one));
      if (first !== second) fail('durable', `one of the ${subject} changed between two looks`, { first, second });
    }
  }
  const [was, is] = [byId(before), byId(after)];
  for (const id of new Set([...was.keys(), ...is.keys()])) {
    const [first, second] = [was.get(id) ?? [], is.get(id) ?? []];
    if (first.join() !== second.join())
      fail('durable', `job ${id} changed by itself between two looks`, { first, second });
  }
}

/** Jobs that may wait for something elsewhere, or have another life later. */
const LATE = new Set(['workflow', 'redriven']);

/** A job whose last run began within this time before it was looked for is awake, ms: that run may have been cut off. */
const AWAKE_MS = 6_000;

/** What nobody touched must have gone on by itself. */
export function checkQuiet({ quiet, untouched, audits }, facts, fail) {
  for (const { late, dueAt, deadline } of quiet) {
    for (const token of late) {
      const runs = facts.runs.get(token) ?? [];
      if (runs.some(({ startedAt }) => startedAt <= deadline && startedAt > deadline - AWAKE_MS)) continue;
      const evidence = { job: facts.jobs.get(token), runs, dueAt, deadline };
      fail('asleep', `${token} was due and nothing happened until a request came`, evidence);
    }
  }
  if (!untouched) return;
  for (const queue of untouched.queues) {
    for (const seen of audits[0]?.queues[queue]?.jobs ?? []) {
      const job = facts.jobs.get(seen.token);
      if (!job || job.parked || job.pending || job.late || LATE.has(job.origin) || !TERMINAL.has(seen.state)) continue;
      // What was on its way to the server when it was left alone came when it was touched.
      if (seen.state === 'cancelled' || seen.createdAt >= untouched.since) continue;
      if (seen.endedAt >= untouched.touchedAt) {
        fail('asleep', `${seen.token} ended only when its queue was touched`, { job, seen, untouched });
      }
    }
  }
}
