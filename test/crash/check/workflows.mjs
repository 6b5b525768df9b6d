/**
 * Workflows: what became of the jobs decides which others there must be and which must not, in which order, with whose
 * results, and how the whole ended. `entry.tree` says what was asked for; it is judged against the jobs that exist.
 */
import { SLACK_MS, TERMINAL } from './facts.mjs';

/** @param look `{ ledger, facts, audit, found }` */
export function checkWorkflows({ ledger, facts, audit, found }, fail) {
  const views = new Map(audit.workflows.map((view) => [view.id, view]));
  for (const entry of ledger.workflows) {
    const view = views.get(entry.id);
    const jobs = tokensOf(entry.tree).flatMap((token) => found.get(token) ?? []);
    const bad = (rule, message) => fail(rule, `workflow ${entry.id}: ${message}`, { entry, view, jobs });
    if (!view || view.missing) {
      if (entry.outcome === 'accepted') bad('workflow lost', 'was accepted and is gone');
      else if (jobs.length > 0) bad('workflow lost', 'is gone, and has jobs');
      continue;
    }
    if (entry.outcome === 'unsent') bad('unknown', 'was never sent');
    checkOne({ entry, view, jobs, facts, found, bad, untouched: ledger.untouched });
  }
}

function checkOne({ entry, view, jobs, facts, found, bad, untouched }) {
  const cancel = entry.cancels.find(({ outcome }) => outcome === 'accepted');
  const isCancelled = view.state === 'cancelled';
  if (cancel && !isCancelled) bad('workflow cancel', `was cancelled, and is ${view.state}`);
  if (isCancelled && !entry.cancels.some(({ outcome }) => outcome !== 'refused' && outcome !== 'unsent')) {
    bad('workflow cancel', 'was cancelled by nobody');
  }
  for (const job of jobs) {
    if (job.workflow !== undefined && job.workflow !== entry.id) bad('identity', `${job.token} is of ${job.workflow}`);
    if (!TERMINAL.has(job.state)) bad('state', `${job.token} is ${job.state}`);
    if (job.state === 'cancelled' && !isCancelled) bad('state', `${job.token} was cancelled by nobody`);
    if (!cancel) continue;
    const last = cancel.answeredAt + SLACK_MS;
    if (job.createdAt > last) bad('workflow cancel', `${job.token} was enqueued after it was cancelled`);
    const runs = facts.runs.get(job.token) ?? [];
    if (runs.some(({ startedAt }) => startedAt > last))
      bad('workflow cancel', `${job.token} ran after it was cancelled`);
  }
  const judge = new Judge({ found, facts, isCancelled, bad });
  const { state } = judge.walk(entry.tree, view, [], undefined);
  if (!isCancelled && view.state !== state) bad('workflow state', `is ${view.state}; by its jobs it is ${state}`);
  checkFigures(entry.tree, view, found, isCancelled, bad);
  if (untouched && entry.outcome === 'accepted' && entry.answeredAt < untouched.since) {
    const alone = tokensOf(entry.tree).every((token) => untouched.queues.includes(facts.jobs.get(token)?.queue));
    if (alone && jobs.some(({ endedAt, state }) => state !== 'cancelled' && endedAt >= untouched.touchedAt)) {
      bad('asleep', 'went on only when it was touched');
    }
  }
}

/** All tokens of a tree; callbacks only on request. */
function tokensOf({ kind, token, children, callbacks = {} }, withCallbacks = true) {
  if (kind === 'job') return [token];
  const below = withCallbacks ? [...children, ...Object.values(callbacks)] : children;
  return below.flatMap((child) => tokensOf(child, withCallbacks));
}

function checkFigures(tree, view, found, isCancelled, bad) {
  const tokens = tokensOf(tree, false);
  const states = tokens.map((token) => found.get(token)?.[0]?.state);
  const completed = states.filter((state) => state === 'completed').length;
  if (view.job_count !== tokens.length) bad('workflow state', `counts ${view.job_count} jobs of ${tokens.length}`);
  // What completes while it is cancelled may not be told any more.
  if (isCancelled) return;
  const failed = states.filter((state) => state === 'discarded').length;
  if (view.completed_count !== completed || view.failed_count !== failed) {
    bad('workflow state', `counts ${view.completed_count} and ${view.failed_count}, not ${completed} and ${failed}`);
  }
}

/** Goes through a tree and its view, and answers of each part how it ended and between which moments. */
class Judge {
  constructor(context) {
    Object.assign(this, context);
  }

  /**
   * @param inherited parent results where nothing of its own comes before a job
   * @param after epoch ms; nothing of the part may have begun before
   * @returns `{ state: 'completed' | 'failed' | 'absent' | 'stuck', from, until, result }`
   */
  walk(node, view, inherited, after) {
    const seen = node.kind === 'job' ? this.job(node, view, inherited) : this[node.kind](node, view ?? {}, inherited);
    if (seen.state !== 'absent' && after !== undefined && seen.from < after) {
      this.bad('workflow order', `${node.token ?? node.kind} began ${after - seen.from} ms before what it waits for`);
    }
    return seen;
  }

  job({ token }, view, inherited) {
    const job = this.found.get(token)?.[0];
    if (!job) {
      if (view?.jobId) this.bad('workflow step', `${token} is said to be ${view.jobId}, which is gone`);
      return { state: 'absent' };
    }
    if (view?.jobId !== undefined && view.jobId !== job.id && !(view.jobId === null && this.isCancelled)) {
      this.bad('workflow step', `${token} is ${job.id}, and is said to be ${view.jobId}`);
    }
    const told = { completed: 'completed', discarded: 'failed', cancelled: 'cancelled' }[job.state];
    if (view && !this.isCancelled && view.state !== told) {
      this.bad('workflow step', `${token} is ${job.state}, and is said to be ${view.state}`);
    }
    const expected = JSON.stringify(inherited);
    const runs = (this.facts.runs.get(token) ?? []).flatMap(({ parents }) => (parents ? [parents] : []));
    for (const parents of [job.parents, ...runs]) {
      if (JSON.stringify(parents) === expected) continue;
      this.bad('parent results', `${token} got ${JSON.stringify(parents)} instead of ${expected}`);
      break;
    }
    const completed = job.state === 'completed';
    return {
      ...{ state: completed ? 'completed' : 'failed', from: job.createdAt, until: job.endedAt },
      result: completed && job.result ? { token: job.result.token, attempt: job.result.attempt } : null,
    };
  }

  chain({ children }, view, inherited) {
    const seen = [];
    for (const [at, child] of children.entries()) {
      const before = seen.at(-1);
      const results = at === 0 ? inherited : seen.map(({ result }) => result);
      const step = this.walk(child, view.steps?.[at], results, before?.until);
      if (before && before.state !== 'completed' && step.state !== 'absent') {
        this.bad('workflow order', `step ${at} of a chain exists, and the one before is ${before.state}`);
      }
      if (before?.state === 'completed' && step.state === 'absent') this.stuck(`step ${at} of a chain never started`);
      seen.push(step);
    }
    return { ...this.sum(seen), result: seen.at(-1).result };
  }

  group({ children }, view, inherited) {
    const seen = children.map((child, at) => this.walk(child, view.steps?.[at], inherited));
    const absent = seen.filter(({ state }) => state === 'absent').length;
    if (absent > 0 && absent < seen.length) this.stuck(`${absent} jobs of a group of ${seen.length} never started`);
    return this.sum(seen);
  }

  batch(node, view, inherited) {
    const sum = this.group(node, view, inherited);
    const ended = sum.state === 'completed' || sum.state === 'failed';
    const due = { on_complete: ended, on_success: sum.state === 'completed', on_failure: sum.state === 'failed' };
    for (const [name, callback] of Object.entries(node.callbacks)) {
      const { state } = this.walk(callback, view.callbacks?.[name], sum.result, sum.until);
      if (state !== 'absent' && !due[name]) this.bad('callback', `${name} was called, and the batch is ${sum.state}`);
      if (state === 'absent' && due[name]) this.stuck(`${name} was not called`, 'callback');
    }
    return sum;
  }

  graph({ children }, view, inherited) {
    const seen = [];
    for (const [at, child] of children.entries()) {
      const needs = child.needs.map((need) => seen[need]);
      const ancestors = ancestorsOf(children, at);
      const results = Array.from({ length: Math.max(-1, ...ancestors) + 1 }, (_, place) =>
        ancestors.has(place) ? seen[place].result : null,
      );
      const after = needs.length === 0 ? undefined : Math.max(...needs.map(({ until }) => until ?? 0));
      const step = this.walk(child, view.steps?.[at], ancestors.size > 0 ? results : inherited, after);
      if (step.state !== 'absent' && needs.some(({ state }) => state !== 'completed')) {
        this.bad('workflow order', `step ${at} of a graph exists, and what it depends on has not completed`);
      }
      seen.push(step);
    }
    const failed = seen.some(({ state }) => state === 'failed');
    for (const [at, { state }] of seen.entries()) {
      const { needs } = children[at];
      const ready = needs.length > 0 && needs.every((need) => seen[need].state === 'completed');
      if (state === 'absent' && ready && !failed) this.stuck(`step ${at} of a graph never started`);
    }
    return this.sum(seen);
  }

  /** Of several parts. Those that never began are ruled out by one that failed, or the whole never began. */
  sum(seen) {
    const begun = seen.filter(({ state }) => state !== 'absent');
    if (begun.length === 0) return { state: 'absent', result: seen.map(() => null) };
    const isFailed = begun.some(({ state }) => state === 'failed');
    const isStuck = begun.length < seen.length || begun.some(({ state }) => state === 'stuck');
    return {
      state: isFailed ? 'failed' : isStuck ? 'stuck' : 'completed',
      from: Math.min(...begun.map(({ from }) => from)),
      until: Math.max(...begun.map(({ until }) => until)),
      result: seen.map(({ result }) => result ?? null),
    };
  }

  stuck(message, rule = 'workflow stuck') {
    if (!this.isCancelled) this.bad(rule, message);
  }
}

function ancestorsOf(children, at, found = new Set()) {
  for (const need of children[at].needs) {
    if (found.has(need)) continue;
    found.add(need);
    ancestorsOf(children, need, found);
  }
  return found;
}
