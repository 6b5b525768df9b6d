/** Figures for the report: whether what is checked has happened at all. */
import { jobsByToken, STATES } from './facts.mjs';

/** @returns name → figure, or figures by name */
export function count(ledger, facts) {
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
    ...subjects(ledger, last, seen),
  };
}

/** How much there was of each subject. */
function subjects(ledger, last, seen) {
  const outcomes = (list) => tally(list.map(({ outcome }) => outcome));
  const cancels = ledger.workflows.flatMap(({ cancels }) => cancels);
  const states = (last?.workflows ?? []).map(({ state }) => state ?? 'not there');
  return {
    durable: durableFigures(ledger),
    children: childrenFigures(ledger, seen),
    ordered: orderedFigures(ledger, seen),
    workflows: { ...outcomes(ledger.workflows), ...tally(states), 'cancels acknowledged': accepted(cancels) },
    cron: {
      entries: ledger.crons.length,
      fires: seen.filter(({ tick }) => tick !== undefined).length,
      ...tally(ledger.cronChanges.map(({ kind }) => kind)),
    },
    unique: { ...outcomes(ledger.uniques), 'asked at the end': ledger.fresh.length },
    exports: {
      whole: ledger.exports.filter(({ end }) => end).length,
      'cut off': ledger.exports.filter(({ end }) => !end).length,
      jobs: ledger.exports.reduce((sum, { ids }) => sum + ids.length, 0),
    },
    operators: {
      pauses: accepted(ledger.pauses.filter(({ kind }) => kind === 'pause')),
      redrives: accepted(ledger.redrives),
      'redrives cut off': ledger.redrives.filter(({ outcome }) => outcome === 'unknown').length,
      changes: accepted(ledger.patches),
      'campaigns cancelled': accepted(ledger.bulks),
      'cut off': ledger.bulks.filter(({ outcome }) => outcome === 'unknown').length,
    },
  };
}

function orderedFigures({ jobs }, seen) {
  const ordered = new Map(jobs.filter(({ group }) => group !== undefined).map((job) => [job.token, job]));
  const there = seen.filter(({ token }) => ordered.has(token));
  return {
    groups: new Set(there.map(({ token }) => `${ordered.get(token).queue} ${ordered.get(token).group}`)).size,
    jobs: there.length,
    'failed before': there.filter(({ errors }) => errors.length > 0).length,
  };
}

/** How long a handler may have been silent when it was cut off, ms. */
const SILENT_MS = 500;

/** Where the kills fell: what each job had told last, if it was a moment before. */
const lastTold = (list, kills) =>
  kills.flatMap((at) => {
    const last = new Map();
    for (const told of list) if (told.seenAt <= at) last.set(told.token, told);
    return [...last.values()].filter(({ seenAt }) => seenAt > at - SILENT_MS).map(({ event }) => event);
  });

function durableFigures({ durable, signals, kills }) {
  const of = (...kinds) => durable.filter(({ event }) => kinds.includes(event)).length;
  const cut = lastTold(durable, kills);
  const cutIn = (...kinds) => cut.filter((event) => kinds.includes(event)).length;
  return {
    ...{ 'jobs ended': of('end'), runs: of('run'), 'steps done': of('finish'), sleeps: of('asleep') },
    ...{
      'signals acknowledged': accepted(signals),
      'cut off between steps': cutIn('run', 'resolved', 'awake', 'heard'),
    },
    ...{ 'in a step': cutIn('begin', 'finish'), 'asleep or waiting': cutIn('asleep', 'waiting') },
  };
}

function childrenFigures({ jobs, children, changes, kills }, seen) {
  const own = new Map(jobs.filter(({ origin }) => origin === 'children').map((job) => [job.token, job]));
  const there = seen.filter(({ token }) => own.has(token));
  const of = (test) => there.filter(test).length;
  const isChild = ({ parent }) => parent !== undefined;
  return {
    parents: of(({ token, undoes }) => own.get(token).parent === undefined && undoes === undefined),
    children: of(isChild),
    'of them cancelled': of((job) => isChild(job) && job.state === 'cancelled'),
    'parents cancelled': accepted(changes.filter(({ token }) => own.has(token))),
    undone: of(({ undoes }) => undoes !== undefined),
    runs: children.filter(({ event }) => event === 'run').length,
    ...Object.fromEntries(
      Object.entries(tally(lastTold(children, kills))).map(([event, n]) => [`cut off after ${event}`, n]),
    ),
  };
}

const accepted = (list) => list.filter(({ outcome }) => outcome === 'accepted').length;

function tally(words) {
  const counts = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
