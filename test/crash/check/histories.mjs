/** Histories for the tests of the judge: sound ones, and ways to break them. */
import { check } from '../check.mjs';
import { STATES } from './facts.mjs';

/** A job of the ledger. */
export function job(token, queue, more = {}) {
  const type = queue.startsWith('push') ? 'push.work' : 'pull.work';
  const plan = { token, failures: 0, end: 'complete', work_ms: 1 };
  return { token, queue, type, plan, maxAttempts: 5, onExhaustion: 'discard', parked: false, pending: false, ...more };
}

/** The same as the server shows it. */
export function done(token, queue, attempt, more = {}) {
  const result = { token, attempt };
  return { id: `id-${token}`, token, queue, state: 'completed', attempt, errors: [], result, endedAt: 5_000, ...more };
}

/** A look at the server. */
export function look(jobs, more = {}) {
  const queues = {};
  for (const queue of new Set(jobs.map((entry) => entry.queue))) {
    const own = jobs.filter((entry) => entry.queue === queue);
    const stats = Object.fromEntries(STATES.map((state) => [state, own.filter((one) => one.state === state).length]));
    stats.depth = stats.scheduled + stats.available + stats.pending + stats.active + stats.retryable;
    queues[queue] = { jobs: own, total: own.length, stats: { ...stats, dead: 0 }, dead: [], deadTotal: 0 };
  }
  return { takenAt: 9_000, queues, reads: [], workflows: [], crons: [], operations: [], ...more };
}

const nothing = () => ({
  ...{
    changes: [],
    kills: [],
    downs: [],
    quiet: [],
    workflows: [],
    crons: [],
    cronChanges: [],
    uniques: [],
    fresh: [],
    durable: [],
    children: [],
    signals: [],
  },
  ...{ pauses: [], redrives: [], patches: [], bulks: [], exports: [] },
});

/** A history without anything in it, but for what is given. `shown`: the jobs that the server shows; `seen`: what else it does. */
export function history({ shown = [], seen = {}, ...more }) {
  const audits = [look(shown, seen), look(shown, seen)];
  return { ...nothing(), jobs: [], enqueues: [], runs: [], reports: [], unexpected: [], ...more, audits };
}

/** A pulled job that failed once, a pushed one, one for later, and a batch over two queues whose answer was cut off. */
export function sound() {
  const failure = { attempt: 1, code: 'planned', message: 'planned a 1', reason: null };
  const parked = {
    id: 'id-c',
    token: 'c',
    queue: 'pull',
    state: 'scheduled',
    attempt: 0,
    errors: [],
    scheduledAt: 90_000,
  };
  const jobs = [
    done('a', 'pull', 2, { errors: [failure] }),
    done('b', 'push', 1),
    parked,
    done('d', 'pull', 1),
    done('e', 'push', 1),
  ];
  const run = { attempt: 1, leaseMs: 1_000, beats: [], outcome: 'success', startedAt: 1_000 };
  const report = { attempt: 1, kind: 'ack', outcome: 'accepted', sentAt: 1_010, answeredAt: 1_020, answer: {} };
  return {
    jobs: [
      job('a', 'pull'),
      job('b', 'push'),
      job('c', 'pull', { parked: true, notBefore: 90_000 }),
      job('d', 'pull'),
      job('e', 'push'),
      job('f', 'pull'),
    ],
    enqueues: [
      { tokens: ['a'], outcome: 'accepted', ids: ['id-a'] },
      { tokens: ['b', 'c'], outcome: 'accepted', ids: ['id-b', 'id-c'] },
      { tokens: ['d', 'e'], outcome: 'unknown' },
      { tokens: ['f'], outcome: 'refused' },
    ],
    runs: [
      { ...run, token: 'a', via: 'pull', outcome: 'failure' },
      { ...run, token: 'a', via: 'pull', attempt: 2, startedAt: 1_200 },
      { ...run, token: 'b', via: 'push' },
      { ...run, token: 'd', via: 'pull' },
      { ...run, token: 'e', via: 'push' },
    ],
    reports: [
      { ...report, token: 'a', kind: 'nack', answer: { next_attempt_at: new Date(1_100).toISOString() } },
      { ...report, token: 'a', attempt: 2 },
      { ...report, token: 'd' },
    ],
    ...nothing(),
    audits: [look(jobs), look(jobs)],
    unexpected: [],
  };
}

/** Changes what both looks show. */
export function show(ledger, change) {
  ledger.audits = ledger.audits.map(({ queues, workflows, crons, operations }) =>
    look(change(Object.values(queues).flatMap(({ jobs }) => jobs)), { workflows, crons, operations }),
  );
}

/** The rules that a history breaks. */
export const rules = (ledger) => [...new Set(check(ledger).violations.map(({ rule }) => rule))].sort();
/** Changes for `show`: a job is gone, or different. */
export const without = (token) => (jobs) => jobs.filter((entry) => entry.token !== token);
export const alter = (token, change) => (jobs) =>
  jobs.map((entry) => (entry.token === token ? { ...entry, ...change } : entry));
