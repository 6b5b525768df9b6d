/** Producers that all want the same few jobs: unique in a queue, and across queues. */
import { setTimeout as delay } from 'node:timers/promises';
import { UNIQUE_QUEUES } from '../queues.mjs';
import { outcomeOf } from './jobs.mjs';

const TYPE = 'unique.work';
const NAMES = Object.keys(UNIQUE_QUEUES);
const SLOTS = { local: 4, across: 6 };
/** A last enqueue of each fingerprint is sent until it is answered otherwise than 503, for so long, ms. */
const FRESH_LIMIT_MS = 25_000;

/** Many of them compete: each enqueues one job or some at once, again and again. */
export async function compete(world, random) {
  while (!world.isOver()) {
    await world.gate.passed();
    if (world.isOver()) return;
    await (random.chance(0.75) ? single(world, random) : together(world, random));
    await delay(random.int(1, 120));
  }
}

/** A job of some fingerprint, as it is sent, with what the ledger keeps of it. */
function make({ planner }, random, want = {}) {
  const scope = want.scope ?? random.pick(Object.keys(SLOTS));
  const queue = want.queue ?? random.pick(NAMES);
  const slot = want.slot ?? random.int(1, SLOTS[scope]);
  const conflict =
    want.conflict ?? random.weighted({ reject: 30, ignore: 35, replace: 30, replace_except_schedule: 5 });
  const fingerprint = fingerprintOf(scope, queue, slot);
  // The exception gives it another job's time.
  const timing = conflict === 'replace_except_schedule' || random.chance(0.8) ? 'now' : 'soon';
  const unique = {
    ...{ keys: scope === 'local' ? ['type', 'queue', 'args'] : ['type', 'args'], args_keys: ['slot'] },
    on_conflict: conflict,
  };
  const body = planner.job(random, {
    ...{ queue, type: TYPE, timing, waitMs: random.int(200, 1_500) },
    extra: { origin: 'unique', cancelledBy: 'unique', fingerprint },
    args: { slot: `${scope}-${slot}` },
    options: { unique },
  });
  return { body, token: body.args[0].token, fingerprint, conflict };
}

const fingerprintOf = (scope, queue, slot) => (scope === 'local' ? `${queue}:${slot}` : `across:${slot}`);

/** One job, alone. `direct`: without waiting at the gate. */
export async function single(world, random, direct = false) {
  const made = make(world, random);
  const answer = await world.client[direct ? 'send' : 'call']('POST', '/jobs', made.body);
  note(world, made, answer, answer.body?.job);
}

/** Some at once, of different fingerprints and often over several queues. */
async function together(world, random) {
  const slots = random.shuffled(Array.from({ length: SLOTS.across }, (_, at) => at + 1)).slice(0, random.int(2, 3));
  const list = slots.map((slot) => make(world, random, { scope: 'across', slot }));
  if (random.chance(0.4)) list.push(make(world, random, { scope: 'local' }));
  const answer = await world.client.call('POST', '/jobs/batch', { jobs: list.map(({ body }) => body) });
  const outcome = outcomeOf(answer);
  if (outcome === 'accepted') {
    for (const [at, made] of list.entries()) note(world, { ...made, batch: true }, answer, answer.body.jobs[at]);
    return;
  }
  // An entry that may be ignored may be missing where the others are.
  const certain = list.filter(({ conflict }) => conflict !== 'ignore');
  const apart = list.filter(({ conflict }) => conflict === 'ignore');
  const groups = [certain, ...apart.map((made) => [made])].filter(({ length }) => length > 0);
  for (const group of groups) world.ledger.addEnqueue({ tokens: group.map(({ token }) => token), outcome });
  const { sentAt, answeredAt } = answer;
  for (const { body, ...made } of list)
    world.ledger.uniques.push({ ...made, batch: true, outcome, sentAt, answeredAt });
  complain(world, answer, outcome, list);
}

/** Notes what one job was told. @param job the envelope in the answer */
function note(world, { token, fingerprint, conflict, batch }, answer, job) {
  const { ledger } = world;
  const { sentAt, answeredAt } = answer;
  const outcome = outcomeOf(answer);
  const entry = { token, fingerprint, conflict, batch, outcome, sentAt, answeredAt };
  ledger.uniques.push(entry);
  if (outcome === 'accepted' && job.args[0].token !== token) {
    Object.assign(entry, { outcome: 'ignored', existing: job.id });
    if (!job.deduplicated && answer.status !== 200) ledger.unexpected.push(`${token} was told of another job`);
    ledger.addEnqueue({ tokens: [token], outcome: 'refused' });
    return;
  }
  if (answer.kind === 'answer' && answer.status === 409) {
    Object.assign(entry, { outcome: 'rejected', existing: answer.body.error?.details?.existing_job_id });
  }
  ledger.addEnqueue({ tokens: [token], outcome, ...(outcome === 'accepted' && { ids: [job.id] }) });
  complain(world, answer, outcome, [{ token, conflict }]);
}

function complain(world, answer, outcome, list) {
  if (outcome !== 'refused' || answer.status === 503) return;
  if (answer.status === 409 && list.some(({ conflict }) => conflict === 'reject')) return;
  const body = JSON.stringify(answer.body);
  world.ledger.unexpected.push(`unique jobs (${list[0].token}, …) were answered ${answer.status}: ${body}`);
}

/** At the very end: every fingerprint must be free again, or name who has it. */
export async function enqueueFresh(world, random) {
  const wanted = NAMES.flatMap((queue) =>
    Array.from({ length: SLOTS.local }, (_, at) => ({ scope: 'local', queue, slot: at + 1 })),
  );
  for (let slot = 1; slot <= SLOTS.across; slot++) wanted.push({ scope: 'across', slot });
  await Promise.all(
    wanted.map(async (want) => {
      const { body, fingerprint } = make(world, random, { ...want, conflict: 'reject' });
      const end = Date.now() + FRESH_LIMIT_MS;
      let answer = await world.client.send('POST', '/jobs', body);
      for (; answer.status === 503 && Date.now() < end; await delay(200)) {
        answer = await world.client.send('POST', '/jobs', body);
      }
      const existing = answer.body?.error?.details?.existing_job_id;
      world.ledger.fresh.push({ fingerprint, status: answer.status, existing, answer: answer.body?.error });
    }),
  );
}
