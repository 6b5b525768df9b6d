/** Jobs that wait for others, in families of up to three generations; some parents are cancelled while they wait. */
import { setTimeout as delay } from 'node:timers/promises';
import { undoTokenOf } from '../identity.mjs';
import { CHILD_QUEUES, CHILD_TIMEOUT_MS } from '../queues.mjs';
import { enqueue, enqueueForSure, outcomeOf } from './jobs.mjs';

/** Above this many of an actor's families on their way, it makes no more. */
const MAX_UNDER_WAY = 20;
const PUSHED = Object.keys(CHILD_QUEUES).filter((name) => CHILD_QUEUES[name] === 'push');
/** Generations of a family. */
const DEPTH = 3;
/** What takes this long is cut off before, ms: a drain waits for all that is due in ten minutes. */
export const LONG_MS = 500_000;

/** @param world as for producers */
export async function raiseFamilies(world, random) {
  const cancels = [];
  let underWay = [];
  for (;;) {
    await world.gate.passed();
    underWay = underWay.filter((token) => !world.ledger.hasEnded(token));
    if (!world.isOver() && underWay.length < MAX_UNDER_WAY) {
      const { token, cancel } = await start(world, random);
      underWay.push(token);
      if (cancel) cancels.push(cancel);
    }
    // A doomed parent waits until it is cancelled.
    if (world.isOver() && cancels.length === 0) return;
    const due = cancels.filter(({ at }) => world.isOver() || at <= Date.now());
    for (const cancel of due) {
      if (await send(world, cancel)) cancels.splice(cancels.indexOf(cancel), 1);
    }
    await delay(random.int(1, 60));
  }
}

/** @returns `{ token, cancel }`: the cancellation to send later, if any */
async function start(world, random) {
  const isDoomed = random.chance(0.25);
  const queues = [
    ...PUSHED,
    ...Object.keys(CHILD_QUEUES).filter((name) => !PUSHED.includes(name) && random.chance(0.4)),
  ];
  const queue = random.pick(queues);
  // Nobody cancels it, or works for the queue that is pulled, while the server is left alone.
  const late = isDoomed || queues.length > PUSHED.length;
  const body = prepare(world, random, queue, { ...makeJob({ random, queues }, queue, 1, isDoomed), late });
  const { id, args } = body;
  const [{ token }] = args;
  if (!(await enqueueForSure(world, body))) return { token };
  return { token, ...(isDoomed && { cancel: { token, id, at: Date.now() + random.int(0, 2_000) } }) };
}

/** A parent that only starts a dozen children in another queue. Sent once, without waiting at the gate. */
export async function startFamily(world, random) {
  const [queue, other] = random.shuffled(PUSHED);
  const leaves = Array.from({ length: random.int(8, 14) }, () => makeChild({ random }, other, DEPTH - 1));
  const wait = { do: 'all', name: 'run-1', timeout_ms: LONG_MS, onFailure: 'return', isCaught: true, children: leaves };
  const plan = { acts: [wait], end: 'complete', work_ms: 0 };
  await enqueue(world, [prepare(world, random, queue, { type: 'child.work', plan, late: false })], { direct: true });
}

/** @returns the job as it is sent; it and its descendants are in the ledger */
function prepare({ planner, ledger }, random, queue, { type, plan, late }) {
  const id = random.uuid(Date.now());
  const body = planner.job(random, {
    ...{ id, queue, type, plan, timing: 'now', options: { timeout_ms: CHILD_TIMEOUT_MS } },
    // Each kill may cost one.
    ...{ maxAttempts: 100, extra: { origin: 'children', late } },
  });
  register(ledger, ledger.jobs.get(body.args[0].token), late);
  return body;
}

/** Names all descendants, and puts them into the ledger, with the jobs that may undo them. */
function register(ledger, { token, queue, type, plan }, late) {
  const own = { maxAttempts: 100, parked: false, pending: false, origin: 'children', late };
  if (type === 'child.undone') {
    ledger.addJob({ ...own, token: undoTokenOf(token), queue, type: `${type}.undo`, undoes: token });
  }
  for (const { name, children } of waitsOf(plan)) {
    for (const [index, child] of children.entries()) {
      child.plan.token = `${token}/${name}/${index}`;
      const job = { token: child.plan.token, queue: child.options.queue, type: child.type, plan: child.plan };
      ledger.addJob({ ...own, ...job, parent: token, cancelledBy: 'parent' });
      register(ledger, job, late);
    }
  }
}

/** Everything that a job waits for. */
export const waitsOf = ({ acts }) => acts.flatMap((act) => (act.do === 'both' ? act.acts : act.children ? [act] : []));

/** @returns is it known what became of it? */
async function send(world, { token, id }) {
  const answer = await world.client.call('POST', `/jobs/${id}/cancel`);
  const outcome = outcomeOf(answer);
  const { sentAt, answeredAt } = answer;
  world.ledger.changes.push({ token, kind: 'cancel', outcome, sentAt, answeredAt });
  if (outcome === 'accepted') world.ledger.settle(token);
  if (outcome === 'refused' && answer.status !== 409 && answer.status !== 503) {
    world.ledger.unexpected.push(`cancelling the parent ${token} was answered ${answer.status}`);
  }
  return answer.kind === 'answer' && answer.status !== 503;
}

/** A job that waits for others. @param context `{ random, queues }`: those of its family */
function makeJob(context, queue, depth, isDoomed = false) {
  const { random } = context;
  const isUndone = random.chance(0.35);
  const prefix = isUndone && random.chance(0.7) ? 'held' : 'run';
  const make = (kind, n) => MAKERS[kind](context, { n, name: `${prefix}-${n}`, queue, depth });
  const acts = [];
  const mark = (n) => isUndone && acts.push({ do: 'step', name: `mark-${n}`, work_ms: random.int(0, 30) });
  mark('first');
  for (let left = depth === 1 ? random.int(1, 3) : 1, n = 1; left > 0; left--, n++) {
    const kinds = { run: 35, all: 35, ...(depth === 1 && { both: 10, race: 8, late: 6, sleep: 6 }) };
    acts.push(make(random.weighted(kinds), n));
    if (random.chance(0.15)) acts.push({ do: 'fail', attempt: acts.filter((act) => act.do === 'fail').length + 1 });
    if (random.chance(0.5)) mark(n);
  }
  if (isDoomed) acts.push(make('doomed', 'last'));
  const end = random.chance(isUndone ? 0.4 : 0.1) ? 'fatal' : 'complete';
  return { type: isUndone ? 'child.undone' : 'child.work', plan: { acts, end, work_ms: random.int(0, 20) } };
}

/** Of the same queue, of another one, or of any. */
const QUEUE_CHOICES = {
  own: ({ random }, queue) => random.pick([queue]),
  other: ({ random, queues }, queue) => random.pick(queues.filter((name) => name !== queue)),
  any: ({ random, queues }) => random.pick(queues),
};

function optionsOf(random, queue, maxAttempts) {
  return {
    ...{ queue, timeoutMs: CHILD_TIMEOUT_MS },
    ...(random.chance(0.1) && { delay: random.int(50, 800) }),
    retry: {
      ...{ maxAttempts, initialInterval: random.int(50, 600), backoffStrategy: 'constant' },
      onExhaustion: random.pick(['discard', 'dead_letter']),
    },
  };
}

/** A child of a job at `depth`: one without children of its own, unless it is asked for one that goes on for long. */
function makeChild(context, queue, depth, { isLong = false, mayFail = true } = {}) {
  const { random } = context;
  if (!isLong && mayFail && depth + 1 < DEPTH && random.chance(0.3)) {
    return { ...makeJob(context, queue, depth + 1), options: optionsOf(random, queue, 100) };
  }
  const end = isLong || !mayFail ? 'complete' : random.weighted({ complete: 78, fatal: 11, exhaust: 11 });
  const acts = [];
  if (!isLong && random.chance(0.15)) acts.push({ do: 'fail', attempt: 1 });
  if (isLong || random.chance(0.15)) {
    acts.push({ do: 'sleep', name: 'nap', ms: isLong ? LONG_MS : random.int(20, 300) });
  }
  const options = optionsOf(random, queue, end === 'exhaust' ? random.int(1, 2) : 100);
  return { type: 'child.work', plan: { acts, end, work_ms: random.int(0, 40) }, options };
}

/** A long one may have a long one of its own: the cancellation has to go down. */
function makeLong(context, queue, depth) {
  const long = makeChild(context, queue, depth, { isLong: true });
  if (depth + 1 >= DEPTH || context.random.chance(0.6)) return long;
  const place = QUEUE_CHOICES.any(context, queue);
  const below = makeChild(context, place, depth + 1, { isLong: true });
  const act = { do: 'run', name: 'run-long', timeout_ms: LONG_MS, isCaught: false, children: [below] };
  return { ...long, plan: { ...long.plan, acts: [act] } };
}

const MAKERS = {
  run(context, { name, queue, depth }) {
    const { random } = context;
    const where = QUEUE_CHOICES[random.weighted({ own: 7, other: 3 })](context, queue);
    return {
      ...{ do: 'run', name, timeout_ms: LONG_MS, isCaught: random.chance(0.6) },
      ...(random.chance(0.15) && { detached: true }),
      children: [makeChild(context, where, depth)],
    };
  },

  all(context, { name, queue, depth }) {
    const { random } = context;
    const choice = random.weighted({ own: 1, other: 6, any: 3 });
    const one = QUEUE_CHOICES[choice](context, queue);
    const place = () => (choice === 'any' ? QUEUE_CHOICES.any(context, queue) : one);
    const onFailure = random.pick(['throw', 'stop', 'return']);
    const children = Array.from({ length: random.int(2, 6) }, () => makeChild(context, place(), depth));
    // A failure stops the long one; where none is planned it would not end.
    const fails = children.some(({ plan }) => plan.acts.length === 0 && plan.end !== 'complete');
    if (onFailure === 'stop' && fails) children.push(makeLong(context, place(), depth));
    return {
      ...{ do: 'all', name, timeout_ms: LONG_MS, onFailure, isCaught: random.chance(0.6) },
      ...(onFailure !== 'stop' && random.chance(0.15) && { detached: true }),
      children,
    };
  },

  both: (context, { n, name, ...more }) => ({
    do: 'both',
    acts: ['a', 'b'].map((part) =>
      MAKERS[context.random.pick(['run', 'all'])](context, { ...more, name: `${name}${part}` }),
    ),
  }),

  race(context, { name, queue, depth }) {
    const { random } = context;
    const where = QUEUE_CHOICES.any(context, queue);
    const isLong = random.chance(0.5);
    return {
      ...{ do: 'race', name, timeout_ms: LONG_MS, limit_ms: random.int(20, 300), isCaught: true },
      ...(!isLong && random.chance(0.5) && { detached: true }),
      children: [isLong ? makeLong(context, where, depth) : makeChild(context, where, depth, { mayFail: false })],
    };
  },

  /** Ends by its time limit. */
  late(context, { name, queue, depth }) {
    const where = QUEUE_CHOICES.any(context, queue);
    const timing = { timeout_ms: context.random.int(50, 400), isCaught: true, isLate: true };
    return { do: 'run', name, ...timing, children: [makeLong(context, where, depth)] };
  },

  sleep: ({ random }, { n }) => ({ do: 'sleep', name: `sleep-${n}`, ms: random.int(50, 400) }),

  /** Waits for some that never end. The cancellation of the parent ends all of them, and none of the detached. */
  doomed(context, { name, queue, depth }) {
    const { random } = context;
    const place = () => QUEUE_CHOICES.any(context, queue);
    const some = (most, make) => Array.from({ length: random.int(1, most) }, () => make());
    const wait = { do: 'all', timeout_ms: LONG_MS, onFailure: 'return', isCaught: true };
    const long = () => makeLong(context, place(), depth);
    const short = () => makeChild(context, place(), depth);
    const kept = { ...wait, name: `${name}-kept`, detached: true, children: some(3, short) };
    return { do: 'both', acts: [{ ...wait, name, children: [...some(3, long), ...some(3, short)] }, kept] };
  },
};
