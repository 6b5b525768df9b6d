/** Producers of groups in a strict order: each has groups of its own, and sends their jobs one request after the other. */
import { setTimeout as delay } from 'node:timers/promises';
import { ORDERED_QUEUES } from '../queues.mjs';
import { enqueue } from './jobs.mjs';

/** Groups of one producer in each queue. */
const GROUPS = 3;
/** Above this many of its jobs on their way, it makes no more: each group runs one at a time. */
const MAX_UNDER_WAY = 30;

/** The queues keep the order. */
export async function keepOrder({ client }) {
  for (const queue of Object.keys(ORDERED_QUEUES)) {
    const answer = await client.send('PUT', `/queues/${queue}/config`, { groups: { order: 'strict' } });
    if (answer.status !== 200) throw new Error(`${queue} was answered ${answer.status}: ${JSON.stringify(answer)}`);
  }
}

/** @param world as for producers */
export async function sendInOrder(world, random, name) {
  let [underWay, order] = [[], 0];
  while (!world.isOver()) {
    await world.gate.passed();
    if (world.isOver()) return;
    underWay = underWay.filter((token) => !world.ledger.hasEnded(token));
    if (underWay.length < MAX_UNDER_WAY) {
      const queue = random.pick(Object.keys(ORDERED_QUEUES));
      const bodies = Array.from({ length: random.weighted({ 1: 60, 2: 20, 5: 20 }) }, () => {
        const group = `${name}-${random.int(1, GROUPS)}`;
        const extra = { group, order: order++ };
        return world.planner.job(random, { queue, timing: 'now', extra, options: { group } });
      });
      const { entry } = await enqueue(world, bodies);
      if (entry.outcome === 'accepted') underWay.push(...entry.tokens);
    }
    await delay(random.int(5, 80));
  }
}
