/** Producers: enqueue in every way there is, and write down what they were told. */
import { setTimeout as delay } from 'node:timers/promises';
import { QUEUES } from '../queues.mjs';

/** Above this many jobs on their way, producers wait. */
const MAX_BACKLOG = 1_200;

const KINDS = { single: 40, batch: 20, spread: 20, chosen: 12, doomed: 3, cancel: 5 };

/** @param world `{ ledger, client, gate, planner, isOver, takenIds, recent }` */
export async function produce(world, random) {
  while (!world.isOver()) {
    await world.gate.passed();
    if (world.isOver()) return;
    if (world.ledger.backlog < MAX_BACKLOG) await ACTIONS[random.weighted(KINDS)](world, random);
    await delay(random.int(1, 40));
  }
}

/** Sends one job or a batch and notes the outcome. `bodies` come from the planner. */
export async function enqueue(world, bodies, { asBatch = bodies.length > 1, direct = false } = {}) {
  const { client, ledger } = world;
  const send = (path, body) => (direct ? client.send('POST', path, body) : client.call('POST', path, body));
  const answer = asBatch ? await send('/jobs/batch', { jobs: bodies }) : await send('/jobs', bodies[0]);
  const tokens = bodies.map((body) => body.args[0].token);
  const entry = { tokens, outcome: outcomeOf(answer), at: answer.sentAt };
  if (entry.outcome === 'accepted') {
    const jobs = asBatch ? answer.body.jobs : [answer.body.job];
    entry.ids = jobs.map(({ id }) => id);
    const told = jobs.map((job) => job.args[0].token);
    if (told.join() !== tokens.join()) world.ledger.unexpected.push(`enqueued ${tokens}, told of ${told}`);
    for (const [at, id] of entry.ids.entries()) remember(world, tokens[at], id);
  }
  ledger.addEnqueue(entry);
  return { answer, entry };
}

/** Sends one job until the outcome is known: its own id makes it safe to ask again. @returns was it accepted? */
export async function enqueueForSure(world, body) {
  for (let tries = 0; ; tries++) {
    const { answer, entry } = await enqueue(world, [body]);
    if (answer.kind === 'answer' && answer.status === 409 && tries > 0) {
      entry.outcome = 'accepted';
      entry.ids = [body.id];
    }
    if (entry.outcome === 'accepted') return true;
    if (answer.kind === 'answer' && answer.status !== 503) {
      world.ledger.unexpected.push(`${body.type} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
      return false;
    }
    await delay(50);
  }
}

/** Of an enqueue. 2xx: accepted. 4xx and 503 say that nothing was enqueued. */
export function outcomeOf(answer) {
  if (answer.kind === 'unsent') return 'unsent';
  if (answer.kind === 'cut') return 'unknown';
  if (answer.status < 300) return 'accepted';
  return answer.status < 500 || answer.status === 503 ? 'refused' : 'unknown';
}

/** Keeps a bounded choice of jobs to cancel or activate. */
function remember(world, token, id) {
  world.recent.push({ token, id });
  if (world.recent.length > 200) world.recent.shift();
}

const ACTIONS = {
  async single(world, random) {
    const { answer, entry } = await enqueue(world, [world.planner.job(random)]);
    mustBeAccepted(world, answer, entry);
  },

  async batch(world, random) {
    const queue = random.pick(Object.keys(QUEUES));
    const bodies = Array.from({ length: random.int(2, 12) }, () => world.planner.job(random, { queue }));
    const { answer, entry } = await enqueue(world, bodies);
    mustBeAccepted(world, answer, entry);
  },

  spread: (world, random) => spread(world, random, false),

  /** An id chosen by the client makes it safe to ask again until the outcome is known. */
  async chosen(world, random) {
    const id = random.uuid(Date.now());
    const body = world.planner.job(random, { id });
    for (let tries = 0; tries < 5; tries++) {
      const { answer, entry } = await enqueue(world, [body]);
      if (entry.outcome === 'accepted') return void world.takenIds.push(id);
      if (answer.kind === 'answer' && answer.status === 409 && tries > 0) {
        entry.outcome = 'accepted';
        entry.ids = [id];
        return;
      }
      if (answer.kind === 'answer') return mustBeAccepted(world, answer, entry);
    }
  },

  /** One entry wants an id that is taken: the batch over several queues must leave nothing behind. */
  async doomed(world, random) {
    if (world.takenIds.length === 0) return;
    const bodies = spreadBatch(world, random);
    bodies.push(world.planner.job(random, { id: random.pick(world.takenIds) }));
    const { answer } = await enqueue(world, random.shuffled(bodies));
    if (answer.kind === 'answer' && answer.status !== 409) {
      world.ledger.unexpected.push(`a batch with a taken id was answered ${answer.status}`);
    }
  },

  /** Cancels or activates a job of a little while ago. */
  async cancel(world, random) {
    if (world.recent.length === 0) return;
    const { token, id } = random.pick(world.recent);
    const { pending } = world.ledger.jobs.get(token);
    const kind = pending && random.chance(0.8) ? 'activate' : 'cancel';
    const answer = await world.client.call('POST', `/jobs/${id}/${kind}`);
    const outcome = outcomeOf(answer);
    world.ledger.changes.push({ token, kind, outcome, sentAt: answer.sentAt, answeredAt: answer.answeredAt });
    if (kind === 'cancel' && outcome === 'accepted') world.ledger.settle(token);
    if (outcome === 'refused' && answer.status !== 409) {
      world.ledger.unexpected.push(`${kind} of ${id} (${token}) was answered ${answer.status}`);
    }
  },
};

/** One batch over several queues. `direct`: without waiting at the gate. */
export async function spread(world, random, direct = true) {
  const { answer, entry } = await enqueue(world, spreadBatch(world, random), { direct });
  mustBeAccepted(world, answer, entry);
}

function spreadBatch(world, random) {
  const queues = random.shuffled(Object.keys(QUEUES)).slice(0, random.int(2, 5));
  const bodies = queues.map((queue) => world.planner.job(random, { queue }));
  for (let more = random.int(0, 5); more > 0; more--) {
    bodies.push(world.planner.job(random, { queue: random.pick(queues) }));
  }
  return random.shuffled(bodies);
}

function mustBeAccepted(world, answer, { tokens }) {
  if (answer.kind !== 'answer' || answer.status < 300 || answer.status === 503) return;
  const body = JSON.stringify(answer.body);
  world.ledger.unexpected.push(`a valid enqueue (${tokens[0]}, …) was answered ${answer.status}: ${body}`);
}
