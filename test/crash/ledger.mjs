/**
 * What the test knows: every job it made up, everything it sent, every answer it saw, every run that was reported. Plain
 * data, so that the checker can judge it and a failing run can be kept. Times are epoch ms.
 */

export class Ledger {
  /** token → { token, queue, type, plan, maxAttempts, onExhaustion, notBefore?, relative?, parked, pending, chosenId? } */
  jobs = new Map();
  /** { tokens, outcome: 'accepted' | 'unknown' | 'refused' | 'unsent', ids? } */
  enqueues = [];
  /** { token, attempt, via: 'push' | 'pull', startedAt, leaseMs, limitMs?, beats: [], outcome?, endedAt? } in the order seen */
  runs = [];
  /** { token, attempt, kind: 'ack' | 'nack' | 'requeue', outcome, answer? } */
  reports = [];
  /** { token, kind: 'cancel' | 'activate', outcome } */
  changes = [];
  /** Moments at which the server was killed. */
  kills = [];
  /** { tokens, dueAt, deadline, late: [tokens] } */
  quiet = [];
  /** Queues left alone at the end: { since, touchedAt }. */
  untouched = undefined;
  /** What each look at the whole server saw. */
  audits = [];
  unexpected = [];

  #runs = new Map();
  #settled = new Set();
  #accepted = new Set();
  #ended = new Set();
  #watchers = new Set();
  lastRunAt = 0;

  addJob(job) {
    this.jobs.set(job.token, job);
  }

  addEnqueue(entry) {
    this.enqueues.push(entry);
    if (entry.outcome !== 'accepted') return;
    for (const token of entry.tokens) {
      const { parked, pending } = this.jobs.get(token);
      if (parked || pending) continue;
      this.#accepted.add(token);
      if (this.#ended.has(token)) this.#settled.add(token);
    }
  }

  addRun(run) {
    const entry = { ...run, seenAt: Date.now(), beats: [] };
    this.runs.push(entry);
    this.#runs.set(`${run.token} ${run.attempt}`, entry);
    this.lastRunAt = entry.seenAt;
    return entry;
  }

  endRun(token, attempt, outcome) {
    const run = this.#runs.get(`${token} ${attempt}`);
    if (!run) {
      this.unexpected.push(`a run ended that never started: ${token}, attempt ${attempt}`);
      return;
    }
    run.outcome = outcome;
    run.endedAt = Date.now();
    this.lastRunAt = run.endedAt;
    const last = outcome === 'failure' && attempt >= this.jobs.get(token).maxAttempts;
    if (outcome === 'success' || outcome === 'fatal' || last) this.settle(token);
    for (const watcher of this.#watchers) watcher(token, outcome);
  }

  /** This job needs no more waiting for. */
  settle(token) {
    if (this.#accepted.has(token)) this.#settled.add(token);
    this.#ended.add(token);
  }

  /** Accepted jobs that have not been seen to end: a rough measure, to hold producers back. */
  get backlog() {
    return this.#accepted.size - this.#settled.size;
  }

  /** Waits until each of these jobs was seen to succeed; answers those that were not by `deadline`. */
  async succeeded(tokens, deadline) {
    const missing = new Set(tokens.filter((token) => !this.#ended.has(token)));
    if (missing.size === 0) return [];
    await new Promise((resolve) => {
      const watcher = (token, outcome) => {
        if (outcome === 'success') missing.delete(token);
        if (missing.size === 0) done();
      };
      const timer = setTimeout(() => done(), Math.max(0, deadline - Date.now()));
      const done = () => {
        clearTimeout(timer);
        this.#watchers.delete(watcher);
        resolve();
      };
      this.#watchers.add(watcher);
    });
    return [...missing];
  }

  toJSON() {
    const { jobs, enqueues, runs, reports, changes, kills, quiet, untouched, audits, unexpected } = this;
    return { jobs: [...jobs.values()], enqueues, runs, reports, changes, kills, quiet, untouched, audits, unexpected };
  }
}
