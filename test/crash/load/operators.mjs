/** Operators at work in queues of their own: they pause and resume, redrive dead letters, change jobs, and cancel by filter. */
import { setTimeout as delay } from 'node:timers/promises';
import { OPS_QUEUES } from '../queues.mjs';
import { enqueue, outcomeOf } from './jobs.mjs';

const NAMES = Object.keys(OPS_QUEUES);
/** Dead letters of one queue that have not been saved: above this many no more are made. */
const MAX_VICTIMS = 60;
/** Jobs of one campaign: more in the first queue than one step of a cancellation takes. */
const CAMPAIGN = { large: 560, small: 60 };
const MAX_CAMPAIGNS = 8;

const steps = (world, random, step, [least, most]) =>
  (async () => {
    while (!world.isOver()) {
      await world.gate.passed();
      if (world.isOver()) return;
      await step(world, random);
      await delay(random.int(least, most));
    }
  })();

/** Only a queue that exists can be paused. */
export async function makeQueues({ client }) {
  for (const queue of NAMES) {
    const answer = await client.send('PUT', `/queues/${queue}/config`, { concurrency: 10 });
    if (answer.status !== 200) throw new Error(`${queue} was answered ${answer.status}: ${JSON.stringify(answer)}`);
  }
}

/** Everyone who works in `queue`. */
export function operate(world, random, queue) {
  return Promise.all([
    steps(world, random, () => feed(world, random, queue), [50, 300]),
    steps(world, random, () => redrive(world, random, queue), [30, 250]),
    steps(world, random, () => change(world, random, queue), [40, 200]),
    steps(world, random, () => pauseForAWhile(world, random, queue), [800, 2_500]),
  ]);
}

/** Notes what an operator was told; 409 and 503 are the only refusals that can be. */
function judge(world, what, answer, also = []) {
  const outcome = outcomeOf(answer);
  if (outcome === 'refused' && ![409, 503, ...also].includes(answer.status)) {
    world.ledger.unexpected.push(`${what} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  }
  return { outcome, sentAt: answer.sentAt, answeredAt: answer.answeredAt };
}

/** Jobs that die, some of which a later life will save. */
async function feed(world, random, queue) {
  const { ledger } = world;
  if (ledger.redrives.length > 2_000 || ledger.backlog > 1_200) return;
  const dead = [...ledger.jobs.values()].filter((job) => job.origin === 'redriven' && job.queue === queue).length;
  if (dead > MAX_VICTIMS && random.chance(0.9)) return;
  const bodies = Array.from({ length: random.int(1, 5) }, () => {
    const saved = random.chance(0.8) ? { saved_in: random.int(1, 3) } : {};
    return world.planner.job(random, {
      ...{ queue, timing: 'now', maxAttempts: random.int(1, 2), onExhaustion: 'dead_letter' },
      plan: { failures: 0, end: 'exhaust', work_ms: random.int(0, 20), ...saved },
      extra: { origin: 'redriven' },
    });
  });
  await enqueue(world, bodies);
}

/** Gives some dead letters another life, and says in it which one it is. */
async function redrive(world, random, queue) {
  const { client, ledger } = world;
  const list = await client.call('GET', `/dead-letter?queue=${queue}&limit=50`);
  if (list.kind !== 'answer' || list.status !== 200) return;
  for (const { id, args, meta } of random.shuffled(list.body.jobs).slice(0, random.int(1, 6))) {
    const entry = { token: args[0].token, id, life: (meta?.life ?? 0) + 1, outcome: 'unknown', sentAt: Date.now() };
    ledger.redrives.push(entry);
    const answer = await client.call('POST', `/dead-letter/${id}/retry`, { override: { meta: { life: entry.life } } });
    Object.assign(entry, judge(world, `redriving ${id}`, answer, [404]));
  }
}

/** Changes a job that waits for an hour; in the end some of them are told to start. */
async function change(world, random, queue) {
  const { client, ledger } = world;
  const body = world.planner.job(random, {
    ...{ queue, timing: 'parked', plan: { failures: 0, end: 'complete', work_ms: 1 } },
    extra: { origin: 'changed' },
  });
  const { entry } = await enqueue(world, [body]);
  if (entry.outcome !== 'accepted') return;
  const [token] = entry.tokens;
  const job = ledger.jobs.get(token);
  const send = async (change) => {
    const note = { token, change, outcome: 'unknown' };
    ledger.patches.push(note);
    const answer = await client.call('PATCH', `/jobs/${entry.ids[0]}`, change);
    Object.assign(note, judge(world, `changing ${token}`, answer));
    return note.outcome;
  };
  for (let changes = random.int(1, 3); changes > 0; changes--) {
    await send({ priority: random.int(-9, 9), tags: [`t${random.int(1, 999)}`] });
  }
  if (!random.chance(0.3)) return;
  // From now on it may start at any time.
  delete job.notBefore;
  job.released = 'unknown';
  job.released = await send({ scheduled_at: '+PT0.3S' });
}

async function pauseForAWhile(world, random, queue) {
  const told = await pauseOrResume(world, queue, 'pause', 'call');
  await delay(random.int(200, 1_200));
  if (told === 'accepted') {
    await world.gate.passed();
    const answer = await world.client.call('GET', `/queues/${queue}/stats`);
    // At the very end somebody else resumes.
    const isLast = world.ledger.pauses.findLast((note) => note.queue === queue)?.kind === 'pause';
    if (isLast && answer.kind === 'answer' && answer.status === 200 && answer.body.paused !== true) {
      world.ledger.unexpected.push(`${queue} was paused and is not: ${JSON.stringify(answer.body)}`);
    }
  }
  await pauseOrResume(world, queue, 'resume', 'call');
}

async function pauseOrResume(world, queue, kind, way) {
  const note = { queue, kind, outcome: 'unknown', sentAt: Date.now() };
  world.ledger.pauses.push(note);
  const answer = await world.client[way]('POST', `/queues/${queue}/${kind}`);
  Object.assign(note, judge(world, `${kind} of ${queue}`, answer));
  return note.outcome;
}

/** The end of the operators' work: nothing stays paused. */
export async function resumeAll(world) {
  for (const queue of NAMES) {
    if ((await pauseOrResume(world, queue, 'resume', 'send')) !== 'accepted') throw new Error(`${queue} stays paused`);
  }
}

/** Prepares campaigns of jobs and cancels them by filter. `world.ready` holds those that can be cancelled. */
export async function campaign(world, random) {
  for (let number = 1; number <= MAX_CAMPAIGNS && !world.isOver(); number++) {
    await world.gate.passed();
    if (world.isOver()) return;
    const name = `campaign-${number}`;
    const [most, least] = random.shuffled(NAMES);
    await Promise.all([
      enlist(world, random, name, most, CAMPAIGN.large),
      enlist(world, random, name, least, CAMPAIGN.small),
    ]);
    world.ready.push(name);
    await delay(random.int(500, 3_000));
    if (random.chance(0.5)) await cancelCampaign(world, random, 'call');
    await delay(random.int(2_000, 6_000));
  }
}

async function enlist(world, random, name, queue, jobs) {
  const bodies = Array.from({ length: jobs }, () =>
    world.planner.job(random, {
      ...{ queue, timing: 'parked', plan: { failures: 0, end: 'complete', work_ms: 1 } },
      ...{ extra: { origin: 'campaign', cancelledBy: 'operator', campaign: name }, args: { campaign: name } },
    }),
  );
  await enqueue(world, bodies);
}

/** Cancels one that is ready. `way` `send`: without waiting at the gate. */
export async function cancelCampaign(world, random, way = 'send') {
  const name = world.ready.shift();
  if (name === undefined) return;
  const filter = { queue: NAMES, where: { 'args.0.campaign': name } };
  const wait = random.pick(['?wait=0', '?wait=0', '']);
  const note = { campaign: name, outcome: 'unknown', sentAt: Date.now() };
  world.ledger.bulks.push(note);
  const answer = await world.client[way]('POST', `/jobs/bulk/cancel${wait}`, { filter });
  Object.assign(note, judge(world, `cancelling ${name}`, answer));
  if (note.outcome !== 'accepted') return;
  // Over queues that do not exist yet it matches nothing, and no queue remembers it.
  if (answer.body.total_matched === 0 && answer.status === 200) note.matchedNothing = true;
  else note.operation = answer.body.operation_id;
}
