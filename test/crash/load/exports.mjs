/** An operator who exports queues while they are at work: of each whole file it is noted what is in it, and what must be. */
import { setTimeout as delay } from 'node:timers/promises';
import { ALL } from '../queues.mjs';

/** @param world as for producers */
export async function takeExports(world, random) {
  const { ledger, client, gate } = world;
  while (!world.isOver()) {
    await gate.passed();
    if (world.isOver()) return;
    const queue = random.pick(ALL);
    const accepted = ledger.idsIn(queue);
    const answer = await client.call('GET', `/admin/queues/${queue}/export?ended=true`);
    if (answer.status === 200) ledger.exports.push({ queue, accepted, ...read(answer.body), sentAt: answer.sentAt });
    await delay(random.int(200, 1_500));
  }
}

/** @returns the ids in a file, in order, and its last line; undefined: it broke off */
function read(text) {
  const lines = text.trimEnd().split('\n');
  const ids = lines.filter((line) => line.startsWith('{"job":')).map((line) => JSON.parse(line).job.id);
  const last = lines.at(-1);
  return { ids, end: last.startsWith('{"end":') ? JSON.parse(last) : undefined };
}
