/**
 * The queue's rules under random histories: operations, schedules, unique jobs, clock jumps (also past changes of daylight
 * saving), evictions, alarms that come late, early, twice or never, other queues that are busy, statements that fail in
 * the middle, and texts as long as they may be. A model that shares no code with the product predicts every job, every fire
 * and every refusal; no answer is a defect, none is too large for a message, and in the end the queue still works.
 *
 * `npm run test:simulation -- --runs N --seed S` plays more; a failure prints seed and the shrunk history.
 */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { it } from 'vitest';
import { check, type Order } from './check';

/** The same histories each time, so that it fails for a change only. */
const order = { runs: 50, seed: 20_261_123, length: 100, skip: 0, shrinks: true, history: null };

const agree = (orders: Order) =>
  runInDurableObject(env.QUEUES.getByName('simulated'), async (_instance, { storage }) => {
    const failure = await check(storage, orders);
    if (failure) throw failure;
  });

it(`${order.runs} histories of ${order.length} steps agree with the model`, { timeout: 3_600_000 }, () => agree(order));

it('trees of jobs that wait for jobs, over two queues, come to an end', { timeout: 3_600_000 }, () =>
  agree({ ...order, runs: 20, trees: true }),
);
