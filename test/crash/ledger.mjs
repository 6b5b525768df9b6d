/**
 * What the test knows: every job it made up, everything it sent, every answer it saw, every run that was reported. Plain
 * data, so that the checker can judge it and a failing run can be kept. Times are epoch ms.
 */

export class Ledger {
  /**
   * token → { token, queue, type, plan, maxAttempts, onExhaustion, notBefore?, relative?, parked, pending, chosenId? }.
   * Jobs of a subject also have its name as `origin`, and who else may cancel them as `cancelledBy`.
   */
  jobs = new Map();
  /** { tokens, outcome: 'accepted' | 'unknown' | 'refused' | 'unsent', ids? } */
  enqueues = [];
  /** { token, attempt, via: 'push' | 'pull', startedAt, leaseMs, limitMs?, beats: [], outcome?, endedAt? } in the order seen */
  runs = [];
  /** { token, attempt, kind: 'ack' | 'nack' | 'requeue', outcome, answer? } */
  reports = [];
  /** { token, kind: 'cancel' | 'activate', outcome } */
  changes = [];
  /** { id, tree, outcome, sentAt, answeredAt, cancels: [{ outcome, sentAt, answeredAt }] } */
  workflows = [];
  /** { name, queue, expression, intervalMs, overlap, missed, maxCatchup, fingerprint?, outcome, sentAt, answeredAt, job } */
  crons = [];
  /** { name, kind: 'pause' | 'resume' | 'declare' | 'trigger', outcome, sentAt, answeredAt, jobId? } */
  cronChanges = [];
  /** { token, fingerprint, conflict, outcome: as of enqueues | 'rejected' | 'ignored', existing?, sentAt, answeredAt } */
  uniques = [];
  /** What a last enqueue of each fingerprint was told: { fingerprint, status, existing?, answer } */
  fresh = [];
  /** { queue, kind: 'pause' | 'resume', outcome, sentAt, answeredAt } */
  pauses = [];
  /** { token, id, life, outcome, sentAt, answeredAt } */
  redrives = [];
  /** { token, change: { priority, tags }, outcome } in order */
  patches = [];
  /** { campaign, operation?, outcome, sentAt, answeredAt } */
  bulks = [];
  /** What handlers with durable steps told, in the order heard: { token, run, event, name?, value?, at, … }, see `durable.ts` */
  durable = [];
  /** What handlers with children told, in the same way, see `children.ts` */
  children = [];
  /** { token, name, payload, outcome, sentAt, answeredAt } */
  signals = [];
  /** Files: { queue, accepted: [ids], ids: [of the jobs in it], end?: its last line, sentAt } */
  exports = [];
  /** Moments at which the server was killed. */
  kills = [];
  /** When there was no server: { from, until }. */
  downs = [];
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
  #listeners = new Set();
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
    this.#runs.set(keyOf(run), entry);
    this.lastRunAt = entry.seenAt;
    return entry;
  }

  endRun({ token, attempt, life }, outcome) {
    const run = this.#runs.get(keyOf({ token, attempt, life }));
    if (!run) {
      this.unexpected.push(`a run ended that never started: ${token}, attempt ${attempt}`);
      return;
    }
    run.outcome = outcome;
    run.endedAt = Date.now();
    this.lastRunAt = run.endedAt;
    const last = outcome === 'failure' && attempt >= this.jobs.get(token)?.maxAttempts;
    if (outcome === 'success' || outcome === 'fatal' || last) this.settle(token);
    for (const watcher of this.#watchers) watcher(token, outcome);
  }

  /** A handler told something of which a list is kept. */
  addTold(list, told) {
    this[list].push({ ...told, seenAt: Date.now() });
    this.lastRunAt = Date.now();
    if (told.event === 'end') this.settle(told.token);
    for (const listener of this.#listeners) listener(list, told);
  }

  /** Waits until a handler tells such an event, for `limitMs` at most. */
  async hears(list, event, limitMs) {
    await new Promise((resolve) => {
      const listener = (where, told) => where === list && told.event === event && done();
      const timer = setTimeout(() => done(), limitMs);
      const done = () => {
        clearTimeout(timer);
        this.#listeners.delete(listener);
        resolve();
      };
      this.#listeners.add(listener);
    });
  }

  /** Ids of the jobs of a queue that were accepted by now. */
  idsIn(queue) {
    const accepted = this.enqueues.filter(({ outcome, ids }) => outcome === 'accepted' && ids);
    return accepted.flatMap(({ tokens, ids }) => ids.filter((_, at) => this.jobs.get(tokens[at])?.queue === queue));
  }

  /** This job needs no more waiting for. */
  settle(token) {
    if (this.#accepted.has(token)) this.#settled.add(token);
    this.#ended.add(token);
  }

  hasEnded(token) {
    return this.#ended.has(token);
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

  /** All that is noted, as plain data. */
  toJSON() {
    return { ...this, jobs: [...this.jobs.values()] };
  }
}

const keyOf = ({ token, attempt, life = 0 }) => `${token} ${life} ${attempt}`;
