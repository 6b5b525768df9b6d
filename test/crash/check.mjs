/**
 * The judge: given everything that was sent and seen (the ledger as plain data, see `ledger.mjs`), is the end state one that
 * the guarantees allow? Pure, so that it can be tested with made-up histories.
 *
 * `ledger.audits` holds looks at the whole server, oldest first; each is judged, and all must show the same.
 */

/** Clocks of test and server are the same; a moment noted by the test lies within this of the server's, ms. */
const SLACK_MS = 25;
/** A lease of a push outlives its time limit by this, ms, when a crash cut the call off. */
const PUSH_GRACE_MS = 10_000;

const TERMINAL = new Set(['completed', 'cancelled', 'discarded']);
const STATES = ['scheduled', 'available', 'pending', 'active', 'retryable', 'completed', 'cancelled', 'discarded'];

/**
 * @param ledger as `Ledger.toJSON` gives it
 * @returns `{ violations: [{ rule, message, evidence }], counts }`
 */
export function check(ledger) {
  const violations = [];
  const facts = index(ledger);
  const fail = (rule, message, evidence) => violations.push({ rule, message, evidence });
  for (const [number, audit] of ledger.audits.entries()) {
    const found = jobsByToken(audit);
    const at = (rule, message, evidence) => fail(rule, `${message} (look ${number + 1})`, evidence);
    checkExistence(facts, found, at);
    checkBatches(ledger, found, at);
    for (const [token, jobs] of found) {
      const job = facts.jobs.get(token);
      if (job && jobs.length === 1) checkJob(facts, job, jobs[0], at);
    }
    checkCounts(audit, at);
  }
  checkRuns(facts, fail);
  checkSameLooks(ledger.audits, fail);
  checkQuiet(ledger, facts, fail);
  for (const message of ledger.unexpected) fail('unexpected', message);
  return { violations, counts: count(ledger, facts) };
}

const grouped = (entries) => {
  const groups = new Map();
  for (const entry of entries) {
    const group = groups.get(entry.token);
    if (group) group.push(entry);
    else groups.set(entry.token, [entry]);
  }
  return groups;
};

/** Everything by token. */
function index(ledger) {
  const jobs = new Map(ledger.jobs.map((job) => [job.token, job]));
  const accepted = new Map();
  const outcomes = new Map();
  for (const { tokens, outcome, ids } of ledger.enqueues) {
    for (const [at, token] of tokens.entries()) {
      outcomes.set(token, [...(outcomes.get(token) ?? []), outcome]);
      if (outcome === 'accepted') accepted.set(token, ids?.[at]);
    }
  }
  const [runs, reports, changes] = [ledger.runs, ledger.reports, ledger.changes].map(grouped);
  return { jobs, accepted, outcomes, runs, reports, changes, kills: ledger.kills };
}

/** token → the jobs that carry it; those without one under undefined. */
function jobsByToken(audit) {
  return grouped(Object.values(audit.queues).flatMap(({ jobs }) => jobs));
}

function checkExistence(facts, found, fail) {
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
function checkBatches(ledger, found, fail) {
  for (const { tokens, outcome } of ledger.enqueues) {
    if (outcome !== 'unknown' || tokens.length < 2) continue;
    const missing = tokens.filter((token) => !found.has(token));
    if (missing.length === 0 || missing.length === tokens.length) continue;
    fail('half batch', `of a batch of ${tokens.length} jobs ${missing.length} are missing`, { tokens, missing });
  }
}

/** One job against what was asked, reported and answered. */
function checkJob(facts, job, seen, fail) {
  const { token } = job;
  const runs = facts.runs.get(token) ?? [];
  const reports = facts.reports.get(token) ?? [];
  const changes = facts.changes.get(token) ?? [];
  const evidence = { job, seen, runs, reports, changes };
  const bad = (rule, message) => fail(rule, `${token}: ${message}`, evidence);
  const changed = (kind, ...outcomes) => changes.some((c) => c.kind === kind && outcomes.includes(c.outcome));

  if (changed('cancel', 'accepted') && seen.state !== 'cancelled') bad('cancel', `cancelled, but it is ${seen.state}`);
  if (seen.state === 'cancelled') {
    if (!changed('cancel', 'accepted', 'unknown')) bad('state', 'cancelled by nobody');
  } else if (job.parked) {
    if (seen.state !== 'scheduled') bad('state', `should still be scheduled, is ${seen.state}`);
  } else if (job.pending && !changed('activate', 'accepted')) {
    if (seen.state !== 'pending' && !changed('activate', 'unknown'))
      bad('state', `should be pending, is ${seen.state}`);
  } else if (!TERMINAL.has(seen.state)) bad('state', `should have ended, is ${seen.state}`);
  checkSchedule(job, seen, bad);

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

/** The runs of each job: in order, not before their time, never two at once, none after its end. */
function checkRuns(facts, fail) {
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
      if (!earlier) continue;
      if (run.attempt <= earlier.attempt)
        bad('attempts', `attempt ${run.attempt} ran after attempt ${earlier.attempt}`);
      else checkHandover(facts, earlier, run, reports, bad);
    }
    for (const report of reports) {
      if (report.kind !== 'ack' || report.outcome !== 'accepted') continue;
      const later = runs.find(({ attempt }) => attempt > report.attempt);
      if (later) bad('completion', `attempt ${later.attempt} ran after attempt ${report.attempt} was acknowledged`);
    }
    for (const change of changes) {
      if (change.kind !== 'cancel' || change.outcome !== 'accepted') continue;
      if (runs.some(({ startedAt }) => startedAt > change.answeredAt + SLACK_MS))
        bad('cancel', 'ran after it was cancelled');
    }
  }
}

/** A job may run again once the run before it has failed, was given back, or lost its lease; not earlier. */
function checkHandover(facts, earlier, run, reports, bad) {
  const report = reports.find(
    ({ attempt, kind, outcome }) => attempt === earlier.attempt && kind !== 'ack' && outcome !== 'refused',
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

/** The counts of each queue are those of its list. */
function checkCounts({ queues, reads }, fail) {
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
function checkSameLooks(audits, fail) {
  const byId = (audit) => {
    const jobs = new Map();
    for (const job of [...jobsByToken(audit).values()].flat()) {
      jobs.set(job.id, [...(jobs.get(job.id) ?? []), JSON.stringify(job)].sort());
    }
    return jobs;
  };
  const [before, after] = [audits.at(-2), audits.at(-1)];
  if (!before || !after) return;
  const [was, is] = [byId(before), byId(after)];
  for (const id of new Set([...was.keys(), ...is.keys()])) {
    const [first, second] = [was.get(id) ?? [], is.get(id) ?? []];
    if (first.join() !== second.join())
      fail('durable', `job ${id} changed by itself between two looks`, { first, second });
  }
}

/** What nobody touched must have gone on by itself. */
function checkQuiet({ quiet, untouched, audits }, facts, fail) {
  for (const { late, dueAt, deadline } of quiet) {
    for (const token of late) {
      const evidence = { job: facts.jobs.get(token), runs: facts.runs.get(token) ?? [], dueAt, deadline };
      fail('asleep', `${token} was due and nothing happened until a request came`, evidence);
    }
  }
  if (!untouched) return;
  for (const queue of untouched.queues) {
    for (const seen of audits[0]?.queues[queue]?.jobs ?? []) {
      const job = facts.jobs.get(seen.token);
      if (!job || job.parked || job.pending || !TERMINAL.has(seen.state)) continue;
      if (seen.endedAt >= untouched.touchedAt) {
        fail('asleep', `${seen.token} ended only when its queue was touched`, { job, seen, untouched });
      }
    }
  }
}

/** Figures for the report. */
function count(ledger, facts) {
  const of = (list, test) => list.filter(test).length;
  const outcome =
    (name) =>
    ({ outcome }) =>
      outcome === name;
  const enqueues = { requests: ledger.enqueues.length };
  for (const name of ['accepted', 'unknown', 'refused', 'unsent']) enqueues[name] = of(ledger.enqueues, outcome(name));
  const last = ledger.audits.at(-1);
  const seen = last ? [...jobsByToken(last).values()].flat() : [];
  const existing = new Set(seen.map(({ token }) => token));
  const uncertain = ledger.enqueues.filter(({ outcome, tokens }) => outcome === 'unknown' && tokens.length > 1);
  return {
    kills: ledger.kills.length,
    enqueues,
    batches: {
      uncertain: uncertain.length,
      'of them there': of(uncertain, ({ tokens }) => existing.has(tokens[0])),
      refused: of(ledger.enqueues, ({ outcome, tokens }) => outcome === 'refused' && tokens.length > 1),
    },
    jobs: {
      accepted: facts.accepted.size,
      exist: seen.length,
      ...Object.fromEntries(
        STATES.map((state) => [state, of(seen, (job) => job.state === state)]).filter(([, number]) => number > 0),
      ),
    },
    runs: {
      push: of(ledger.runs, ({ via }) => via === 'push'),
      pull: of(ledger.runs, ({ via }) => via === 'pull'),
      'jobs run more than once': of([...facts.runs.values()], (runs) => runs.length > 1),
      'after a success': of([...facts.runs.values()], (runs) => runs.slice(0, -1).some(outcome('success'))),
    },
    reports: {
      ...Object.fromEntries(
        ['accepted', 'unknown', 'refused'].map((name) => [name, of(ledger.reports, outcome(name))]),
      ),
      'leases lost': of(
        seen.flatMap(({ errors }) => errors),
        ({ code }) => code === 'visibility_timeout',
      ),
    },
    quiet: {
      waits: ledger.quiet.length,
      jobs: ledger.quiet.reduce((sum, { tokens }) => sum + tokens.length, 0),
    },
  };
}
