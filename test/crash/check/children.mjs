/**
 * Jobs that wait for others: each family comes to the end that its plans lead to, with one job for each child, and
 * parents learn what became of their children. What handlers told (`children.ts`) is judged by the jobs that exist.
 */
import { undoTokenOf } from '../identity.mjs';
import { waitsOf } from '../load/children.mjs';
import { HANDLERS } from '../queues.mjs';
import { grouped, SLACK_MS, TERMINAL } from './facts.mjs';

/** @param look `{ ledger, facts, found }` */
export function checkChildren({ ledger, facts, found }, fail) {
  const told = grouped(ledger.children);
  for (const token of told.keys()) {
    if (!facts.jobs.has(token)) fail('unknown', `${token}: nobody enqueued the job that ran`, told.get(token));
  }
  for (const job of facts.jobs.values()) {
    if (job.origin !== 'children' || job.undoes !== undefined) continue;
    const seen = found.get(job.token)?.[0];
    const events = told.get(job.token) ?? [];
    const undo = found.get(undoTokenOf(job.token))?.[0];
    const waits = waitsOf(job.plan).map((act) => ({
      ...act,
      kids: act.children.map(({ plan }) => ({ token: plan.token, plan, job: found.get(plan.token)?.[0] })),
      saw: events.filter(({ event, name }) => event === 'saw' && name === act.name),
    }));
    const evidence = { job, seen, undo, children: waits.flatMap(({ kids }) => kids.map((kid) => kid.job)), events };
    const bad = (rule, message) => fail(rule, `${job.token}: ${message}`, { ...evidence, kills: facts.kills });
    const look = { job, seen, events, waits, undo, kills: facts.kills, bad };
    checkOrphans(look);
    if (!seen) continue;
    checkEnd(look);
    for (const wait of waits) {
      checkKids(look, wait);
      for (const what of wait.saw) checkSeen(wait, what, bad);
    }
    checkUndo(look);
  }
}

/** How a job ends that nobody cancels; `never`: it would go on for longer than the test. */
export function endOf(plan) {
  for (const act of plan.acts) {
    const ends = waitsOf({ acts: [act] }).map(endOfWait);
    for (const end of ['failed', 'never']) if (ends.includes(end)) return end === 'failed' ? 'discarded' : end;
    if (act.name === 'nap' && act.ms > 60_000) return 'never';
  }
  return plan.end === 'complete' ? 'completed' : 'discarded';
}

/** How a job goes on after it has waited: `on`, `failed` or `never`. */
function endOfWait({ do: kind, children, onFailure, isCaught, isLate }) {
  if (kind === 'race' || isLate) return 'on';
  const ends = children.map(({ plan }) => endOf(plan));
  const hasFailed = ends.includes('discarded');
  if (ends.includes('never') && !(hasFailed && onFailure === 'stop')) return 'never';
  return hasFailed && onFailure !== 'return' && !isCaught ? 'failed' : 'on';
}

/** Its children are its own, and there are none of a job that is not there. */
function checkOrphans({ seen, waits, bad }) {
  for (const { job } of waits.flatMap(({ kids }) => kids)) {
    if (!job) continue;
    if (!seen) bad('orphan', `${job.token} exists, and its parent does not`);
    else if (job.parent !== seen.id) bad('orphan', `${job.token} is a child of ${job.parent}`);
  }
}

/** A job ends as it must; one that waits has something to wait for, and uses no attempt. */
function checkEnd({ job, seen, events, waits, kills, bad }) {
  const expected = endOf(job.plan);
  if (!TERMINAL.has(seen.state)) {
    const last = waits.findLast(({ name }) => events.some((told) => told.event === 'waiting' && told.name === name));
    if (last?.kids.every((kid) => kid.job && TERMINAL.has(kid.job.state))) {
      bad('asleep', `is ${seen.state}, and all that ${last.name} waits for has ended`);
    }
    return;
  }
  if (seen.state !== 'cancelled' && seen.state !== expected) bad('state', `should be ${expected}, is ${seen.state}`);
  if (seen.state !== 'completed') return;
  const given = events.some(({ event, value }) => event === 'end' && value === seen.result?.value);
  if (!given || seen.result?.token !== job.token) bad('child result', 'has a result that it never gave');
  checkAttempts(job, seen, kills, bad);
}

/** Each attempt but the last has left an error: none is used up by a wait. */
function checkAttempts({ plan }, { attempt, errors, createdAt, endedAt }, kills, bad) {
  if (attempt !== errors.length + 1) bad('attempts', `attempt ${attempt} after ${errors.length} failures`);
  const planned = errors.filter(({ message }) => message?.startsWith('planned ')).length;
  const failures = plan.acts.filter((act) => act.do === 'fail').length;
  if (planned > failures) bad('attempts', `failed ${planned} times as planned, of ${failures}`);
  const wasCutOff = kills.some((at) => at >= createdAt - SLACK_MS && at <= endedAt + SLACK_MS);
  if (!wasCutOff && errors.length > planned) bad('attempts', 'failed although no server was killed');
}

/** The children of one wait: those that were reached exist, and nobody else cancels them. */
function checkKids({ job, seen, waits, bad }, wait) {
  const { name, kids, saw, onFailure, isLate, detached } = wait;
  const failing = waits.findIndex((one) => endOfWait(one) === 'failed');
  const last = failing < 0 ? waits.length : failing;
  const isBefore = waits.indexOf(wait) <= last || inOneAct(job.plan, name, waits[last]?.name);
  const isReached = saw.length > 0 || (isBefore && TERMINAL.has(seen.state) && seen.state !== 'cancelled');
  if (isReached && saw.length === 0) bad('unseen', `ended without the end of ${name}`);
  const hasFailed = kids.some((kid) => kid.job?.state === 'discarded');
  for (const kid of kids) {
    if (!kid.job) {
      if (isReached) bad('child lost', `${kid.token} does not exist`);
      continue;
    }
    const { state, endedAt, token } = kid.job;
    if (TERMINAL.has(seen.state) && !detached && !TERMINAL.has(state)) {
      bad('left running', `it is ${seen.state}, and its child ${token} is ${state}`);
    }
    if (state !== 'cancelled') continue;
    if (detached) bad('detached', `its child ${token} was cancelled, and is detached`);
    else if (!isLate && !(onFailure === 'stop' && hasFailed) && !(seen.endedAt <= endedAt + SLACK_MS)) {
      bad('state', `its child ${token} was cancelled by nobody`);
    }
  }
}

/** Do these waits begin together? Then each is reached when the other one is. */
const inOneAct = ({ acts }, ...names) =>
  acts.some((act) => act.do === 'both' && names.every((name) => act.acts.some((one) => one.name === name)));

/** What a parent saw of its children is what they did. */
function checkSeen({ do: kind, name, kids, onFailure, isLate }, { ends, isOver, at }, bad) {
  if (isOver) {
    if (!isLate && kind !== 'race') bad('child result', `${name} was waited for in vain`);
    return;
  }
  for (const { index, id, result, error } of ends) {
    const { token, job } = kids[index] ?? {};
    const differs = (what) => bad('child result', `${name} has ${what} of ${token}, which is ${job?.state}`);
    if (!job) differs('an end');
    else if (id !== undefined && id !== job.id) differs(`the id ${id}`);
    else if (error) checkError({ error, job, isStopped: onFailure === 'stop' }, differs);
    else if (job.state !== 'completed' || textOf(result) !== textOf(job.result)) differs('another result');
    if (job && !error && at < job.endedAt - SLACK_MS) bad('child result', `${name} was seen before ${token} had ended`);
  }
  const listed = ends.map(({ index }) => index);
  const isThrown = ends.length > 0 && ends.every(({ error }) => error);
  const due = kids.flatMap(({ job }, index) => (!isThrown || job?.state !== 'completed' ? [index] : []));
  // Of those that were stopped, some may have completed since.
  if (due.some((index) => !listed.includes(index))) bad('child result', `${name} has ends of ${listed}, not of ${due}`);
}

function checkError({ error, job, isStopped }, differs) {
  const { code, message } = job.errors.at(-1) ?? {};
  if (error.state === 'cancelled') {
    if (job.state !== 'cancelled' && !isStopped) differs('a cancellation');
  } else if (error.state !== 'discarded' || job.state !== 'discarded') differs(`an error (${error.code})`);
  else if (error.code !== code || !error.message.endsWith(message)) differs(`the error ${error.message}`);
}

const textOf = ({ token, attempt, value } = {}) => JSON.stringify([token, attempt, value]);

/** What a job has done is undone when it ends otherwise than completed, and only then. */
function checkUndo({ job, seen, events, waits, undo, bad }) {
  const undone = events.filter(({ event }) => event === 'undone');
  if (!TERMINAL.has(seen.state) || seen.state === 'completed') {
    if (undo || undone.length > 0) bad('undo', `is ${seen.state}, and was undone`);
    return;
  }
  // A call for one job records a step with its answer: one that is cut off before is not known.
  const isKnownBy = HANDLERS[`${job.queue}/*`]?.payload === 'envelope' ? 'resolved' : 'begin';
  const begun = events.filter(({ event }) => event === isKnownBy).map(({ name }) => name);
  const held = waits.filter(({ name, kids }) => name.startsWith('held-') && kids.some((kid) => kid.job));
  const due = new Set(job.type === 'child.undone' ? [...begun, ...held.map(({ name }) => name)] : []);
  if (due.size === 0 && !undo && undone.length === 0) return;
  if (!undo) {
    bad('undo', `is ${seen.state}, and has no job that undoes it`);
    return;
  }
  if (undo.undoes !== seen.id) bad('undo', `its undo job undoes ${undo.undoes}`);
  if (undo.state !== 'completed') bad('undo', `is ${seen.state}, and its undo job is ${undo.state}`);
  for (const name of due) {
    if (!undone.some((told) => told.name === name)) bad('undo', `${name} was not undone`);
  }
  for (const told of undone) checkUndone(told, { seen, events, waits, bad });
}

function checkUndone({ name, isCertain, value, jobIds, end, at }, { seen, events, waits, bad }) {
  const isEnd = seen.state === 'cancelled' ? end === 'cancelled' : end === 'discarded' || end === 'dead_letter';
  if (!isEnd) bad('undo', `${name} was undone because it was ${end}, and is ${seen.state}`);
  if (at < seen.endedAt - SLACK_MS) bad('undo', `${name} was undone before the job had ended`);
  const resolved = events.findLast((told) => told.event === 'resolved' && told.name === name);
  if (resolved && (!isCertain || value !== resolved.value)) bad('undo', `${name} was undone without its result`);
  const kids = waits.find((wait) => wait.name === name)?.kids ?? [];
  for (const [index, id] of jobIds.entries()) {
    if (id !== null && id !== kids[index]?.job?.id) bad('undo', `${name} was undone for the job ${id}`);
  }
}
