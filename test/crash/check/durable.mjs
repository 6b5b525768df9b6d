/**
 * Jobs with durable steps: what was done stays done, and each job comes to its end. The handler tells each thing before it
 * goes on (`durable.ts`), so the order of what was heard is the order of what happened.
 */
import { grouped, SLACK_MS } from './facts.mjs';

/** Every name that a plan uses, by what it is. */
export function namesOf({ acts }) {
  const names = { steps: [], waits: [], sleeps: [], failures: 0 };
  for (const act of acts) {
    if (act.do === 'step') names.steps.push(act.name);
    if (act.do === 'both') names.steps.push(...act.acts.map(({ name }) => name));
    if (act.do === 'sleep') names.sleeps.push(act.name);
    if (act.do === 'wait') names.waits.push(act.name);
    if (act.do === 'fail' || act.breaks !== undefined) names.failures++;
  }
  return names;
}

/** What happened, by the handlers' word. */
export function checkSteps({ durable, signals }, facts, fail) {
  const sent = grouped(signals);
  for (const [token, events] of grouped(durable)) {
    const job = facts.jobs.get(token);
    const bad = (rule, message) => fail(rule, `${token}: ${message}`, { job, events, kills: facts.kills });
    if (!job) {
      bad('unknown', 'nobody enqueued the job that ran');
      continue;
    }
    const runs = new Map(events.filter(({ event }) => event === 'run').map((one) => [one.run, one]));
    for (const [name, own] of grouped(
      events.filter((one) => one.name !== undefined),
      (one) => one.name,
    )) {
      checkOnce(name, own, runs, bad);
      checkResults(name, own, bad);
      checkSleep(name, own, runs, bad);
    }
    checkHeard(job, events, sent.get(token) ?? [], bad);
  }
}

/**
 * A step whose call has returned is never begun again by a run that was claimed later. One that was claimed earlier is over
 * for the queue, and may not have heard so: what it records is refused.
 */
function checkOnce(name, events, runs, bad) {
  for (const [at, { event, run }] of events.entries()) {
    if (event !== 'begin') continue;
    const before = events.slice(0, at).find((one) => one.event === 'resolved' && !isLater(runs, one.run, run));
    if (before) bad('step again', `${name} was done and recorded, and then was done again`);
  }
}

const isLater = (runs, one, other) => runs.get(one).startedAt > runs.get(other).startedAt;

/** All runs see one result, and it is what the step returned once. */
function checkResults(name, events, bad) {
  const of = (kind) => events.filter(({ event }) => event === kind).map(({ value }) => value);
  const [seen, returned] = [new Set([...of('resolved'), ...of('heard')]), new Set(of('finish'))];
  if (seen.size > 1) bad('step result', `${name} had ${seen.size} results`);
  for (const value of of('resolved')) {
    if (!returned.has(value)) bad('step result', `${name} has a result that it never returned`);
  }
}

/**
 * A sleep lasts from when it was first reached, as the queue knows it: it cannot tell how long the job was on its way to
 * the handler from how far the two clocks differ.
 */
function checkSleep(name, events, runs, bad) {
  const asleep = events.filter(({ event }) => event === 'asleep');
  for (const { at, until } of events.filter(({ event }) => event === 'awake')) {
    const ends = asleep.map((one) => one.at + one.ms - (runs.get(one.run).at - runs.get(one.run).startedAt));
    const due = Math.max(until ?? 0, Math.min(...ends));
    if (at < due - SLACK_MS) bad('sleep', `${name} ended ${due - at} ms early`);
  }
}

/** What was acknowledged is heard, and nothing else is. */
function checkHeard({ plan }, events, sent, bad) {
  for (const { name, value } of events.filter(({ event }) => event === 'heard')) {
    const isSent = plan.acts.find((act) => act.name === name)?.signalled;
    const expected = isSent ? sent.find((one) => one.name === name)?.payload : 'timed out';
    if (value !== expected) bad('signal', `${name} heard ${value}, not ${expected}`);
  }
  for (const [name, tries] of grouped(sent, (one) => one.name)) {
    const refused = tries.findIndex(({ outcome }) => outcome === 'refused');
    // One whose answer was cut off may have ended the wait, and the job.
    if (refused >= 0 && !tries.slice(0, refused).some(({ outcome }) => outcome === 'unknown')) {
      bad('signal', `${name} was refused with ${tries[refused].status}`);
    }
  }
}

/** How each job ended, as the server shows it. */
export function checkDurable({ ledger, facts, found }, fail) {
  const told = grouped(ledger.durable);
  for (const job of facts.jobs.values()) {
    const seen = job.origin === 'durable' && found.get(job.token)?.[0];
    if (!seen) continue;
    const events = told.get(job.token) ?? [];
    const bad = (rule, message) => fail(rule, `${job.token}: ${message}`, { job, seen, events, kills: facts.kills });
    if (seen.state !== 'completed') {
      bad('state', `should be completed, is ${seen.state}`);
      continue;
    }
    checkAttempts(job, seen, facts.kills, bad);
    const { steps, waits } = namesOf(job.plan);
    const last = new Map(
      events.filter(({ event }) => event === 'resolved' || event === 'heard').map(({ name, value }) => [name, value]),
    );
    for (const name of [...steps, ...waits]) {
      if (!last.has(name)) bad('step', `${name} was never done`);
      else if (seen.result?.values?.[name] !== last.get(name))
        bad('step result', `the job's result has another ${name}`);
    }
  }
}

/** A sleep, a signal, or a step of its own run uses no attempt: each attempt but the last has left an error. */
function checkAttempts({ plan }, { attempt, errors, createdAt, endedAt }, kills, bad) {
  if (attempt !== errors.length + 1) bad('attempts', `attempt ${attempt} after ${errors.length} failures`);
  const planned = errors.filter(({ code, message }) => code === 'planned' || message?.startsWith('planned ')).length;
  const { failures } = namesOf(plan);
  if (planned > failures) bad('attempts', `failed ${planned} times as planned, of ${failures}`);
  const wasCutOff = kills.some((at) => at >= createdAt - SLACK_MS && at <= endedAt + SLACK_MS);
  if (!wasCutOff && errors.length > planned) bad('attempts', 'failed although no server was killed');
}
