/** Starts workflows of every form, in one queue or over several, and cancels some. What it made up is in the ledger as a tree. */
import { setTimeout as delay } from 'node:timers/promises';
import { QUEUES } from '../queues.mjs';
import { outcomeOf } from './jobs.mjs';

/** Above this many jobs on their way, no workflow is started. */
const MAX_BACKLOG = 1_000;

/** @param world as for producers */
export async function orchestrate(world, random) {
  const started = [];
  while (!world.isOver()) {
    await world.gate.passed();
    if (world.isOver()) return;
    if (started.length > 0 && random.chance(0.12)) await cancel(world, random, random.pick(started));
    else if (world.ledger.backlog < MAX_BACKLOG) {
      const entry = await startWorkflow(world, random);
      if (entry.outcome === 'accepted') started.push(entry);
      if (started.length > 20) started.shift();
    }
    await delay(random.int(10, 150));
  }
}

/** Starts one workflow. `direct`: without waiting at the gate, and not asked again. */
export async function startWorkflow(world, random, direct = false) {
  const id = random.uuid(Date.now());
  const { tree, body } = makeWorkflow(world, random, id);
  const entry = { id, tree, outcome: 'unsent', sentAt: Date.now(), cancels: [] };
  world.ledger.workflows.push(entry);
  // Its own id makes it safe to ask again until the outcome is known.
  for (let tries = direct ? 1 : 3; tries > 0; tries--) {
    const answer = await world.client[direct ? 'send' : 'call']('POST', '/workflows', { id, ...body });
    const outcome = outcomeOf(answer);
    const known = answer.kind === 'answer' && answer.status === 409 && entry.outcome === 'unknown';
    if (known || outcome !== 'unsent')
      entry.outcome = known ? 'accepted' : outcome === 'accepted' ? outcome : 'unknown';
    entry.answeredAt = answer.answeredAt;
    if (entry.outcome === 'accepted') break;
    if (outcome === 'refused' && answer.status !== 503) {
      world.ledger.unexpected.push(`workflow ${id} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
      break;
    }
  }
  return entry;
}

async function cancel(world, random, entry) {
  const { id } = entry;
  const [method, path] = random.chance(0.5) ? ['DELETE', `/workflows/${id}`] : ['POST', `/workflows/${id}/cancel`];
  const note = { outcome: 'unknown', sentAt: Date.now() };
  entry.cancels.push(note);
  const answer = await world.client.call(method, path);
  Object.assign(note, { outcome: outcomeOf(answer), sentAt: answer.sentAt, answeredAt: answer.answeredAt });
  if (note.outcome === 'accepted' && answer.body.state !== 'cancelled') {
    world.ledger.unexpected.push(`cancelling workflow ${id} was answered with the state ${answer.body.state}`);
  }
  if (note.outcome === 'refused' && answer.status !== 409 && answer.status !== 503) {
    world.ledger.unexpected.push(`cancelling workflow ${id} was answered ${answer.status}`);
  }
}

/** Where the jobs of one workflow go: all to one queue, only to handlers, or anywhere. */
function someQueues(random) {
  const all = Object.keys(QUEUES);
  const choice = random.weighted({ one: 3, pushed: 3, any: 4 });
  if (choice === 'one') return [random.pick(all)];
  return choice === 'pushed' ? all.filter((name) => QUEUES[name] === 'push') : all;
}

/** @returns `{ tree, body }`: for the ledger and for the wire */
function makeWorkflow(world, random, workflow) {
  const context = { world, random, workflow, queues: someQueues(random) };
  const kind = random.weighted({ chain: 35, group: 15, batch: 25, graph: 25 });
  return MAKERS[kind](context, 0);
}

/** A part of a workflow: a job, or at times again a whole one. */
function makePart(context, depth) {
  const { random } = context;
  if (depth > 2 || random.chance(0.82)) return makeJob(context);
  return MAKERS[random.weighted({ chain: 40, group: 20, batch: 25, graph: 15 })](context, depth);
}

function makeJob({ world, random, workflow, queues }) {
  const end = random.weighted({ complete: 92, fatal: 5, exhaust: 3 });
  const failures = random.chance(0.12) ? 1 : 0;
  const body = world.planner.job(random, {
    queue: random.pick(queues),
    timing: 'now',
    plan: { failures, end, work_ms: random.int(0, 30) },
    extra: { origin: 'workflow', cancelledBy: 'workflow', workflow },
  });
  return { tree: { kind: 'job', token: body.args[0].token }, body };
}

const parts = (context, depth, [least, most]) =>
  Array.from({ length: context.random.int(least, most) }, () => makePart(context, depth + 1));

const MAKERS = {
  chain(context, depth) {
    const made = parts(context, depth, [2, 4]);
    return {
      tree: { kind: 'chain', children: made.map(({ tree }) => tree) },
      body: { type: 'chain', steps: made.map(({ body }) => body) },
    };
  },

  group(context, depth) {
    const isLarge = depth === 0 && context.random.chance(0.05);
    const made = parts(context, depth, [2, isLarge ? 40 : 5]);
    return {
      tree: { kind: 'group', children: made.map(({ tree }) => tree) },
      body: { type: 'group', jobs: made.map(({ body }) => body) },
    };
  },

  batch(context, depth) {
    const { tree, body } = MAKERS.group(context, depth);
    const names = context.random.shuffled(['on_complete', 'on_success', 'on_failure']);
    const made = names.slice(0, context.random.int(1, 3)).map((name) => [name, makeJob(context)]);
    const each = (member) => Object.fromEntries(made.map(([name, callback]) => [name, callback[member]]));
    return {
      tree: { ...tree, kind: 'batch', callbacks: each('tree') },
      body: { ...body, type: 'batch', callbacks: each('body') },
    };
  },

  /** Each step depends on some of those before it. */
  graph(context, depth) {
    const { random } = context;
    const made = parts(context, depth, [2, 5]);
    const needs = made.map((_, at) =>
      Array.from({ length: at }, (_, before) => before).filter(() => random.chance(0.5)),
    );
    const steps = made.map(({ body }, at) => ({
      ...{ ...body, id: `s${at}` },
      ...(needs[at].length > 0 && { depends_on: needs[at].map((need) => `s${need}`) }),
    }));
    return {
      tree: { kind: 'graph', children: made.map(({ tree }, at) => ({ ...tree, needs: needs[at] })) },
      body: { ...(depth > 0 && { type: 'graph' }), steps },
    };
  },
};
