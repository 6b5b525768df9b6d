/** A clock that is set back: consumers remember no moment of before. */
import { expect, it } from 'vitest';
import { clock, HOUR, SECOND } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server } from '../../support/server';

clock.startAtT0();

const rate = { rate: { limit: 1, period: 'minute' } };
const chunked = (wait_ms: number) => ({
  handlers: [{ type: 'test.echo', batch: { size: 2, wait_ms } }],
  types: ['test.echo'],
});

it.each<[string, Json, Json]>([
  ['one by one', rate, {}],
  ['in strict order', { order: 'strict', ...rate }, {}],
  ['by the chunk', rate, chunked(0)],
])('a group whose rate is used up continues a period later, %s', async (_, groups, how) => {
  const queue = new TestQueue();
  await server.configure(queue.name, { groups });
  const options = { group: 'g' };
  const ids = [await server.enqueue(queue.name, { options }), await server.enqueue(queue.name, { options })];
  expect(await server.takeIds(queue.name, how)).toEqual([ids[0]]);
  await server.ack(ids[0]);
  expect(await server.takeIds(queue.name, how)).toEqual([]);
  clock.at(-24 * HOUR);
  expect(await server.takeIds(queue.name, how)).toEqual([]);
  clock.at(-24 * HOUR + 61 * SECOND);
  expect(await server.takeIds(queue.name, how)).toEqual([ids[1]]);
});

it('a job that waits for others of its chunk has waited for long enough', async () => {
  const queue = new TestQueue();
  const id = await server.enqueue(queue.name);
  expect(await server.takeIds(queue.name, chunked(30_000))).toEqual([]);
  clock.at(-24 * HOUR);
  expect(await server.takeIds(queue.name, chunked(30_000))).toEqual([id]);
});
