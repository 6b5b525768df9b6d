/** The starts of groups as they are kept: never fewer than there were. */
import { expect, it } from 'vitest';
import { CountingSql } from '../../../src/queue/store/counting-sql';
import { GroupStarts } from '../../../src/queue/store/groups/starts';
import { clock, T0 } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { server } from '../../support/server';

clock.startAtT0();

const RATE = { limit: 10, period_ms: 60_000 };

async function ratedQueue(): Promise<TestQueue> {
  const queue = new TestQueue();
  await server.configure(queue.name, { groups: { rate: { limit: 10, period: 'minute' } } });
  await queue.add();
  return queue;
}

it('starts of very many groups share counters: one that shares waits longer at most', async () => {
  const queue = await ratedQueue();
  for (const isNew of [false, true]) {
    if (isNew) await queue.evict();
    const room = await queue.inside(({ q }) => {
      const { starts } = q.store.gates;
      if (!isNew) {
        for (let at = 0; at < 101_000; at += 1_000) {
          starts.note(new Map(Array.from({ length: 1_000 }, (_, n) => [`group ${at + n}`, 1])), T0);
        }
      }
      const rooms = ['group 5', 'group 100999', 'another one'].map((group) => starts.room(group, RATE, 0, T0 + 1));
      return { rooms, over: starts.room('group 100999', RATE, 0, T0 + 60_000) };
    });
    const [own, shared, other] = room.rooms as [number, number, number];
    expect([own <= 9, shared <= 9, other <= 10]).toEqual([true, true, true]);
    expect(own).toBeGreaterThanOrEqual(8);
    expect(room.over).toBe(10);
  }
});

it('moments of very many starts are merged, at the later one', async () => {
  const queue = await ratedQueue();
  const merged = await queue.inside(({ q }) => {
    const { starts } = q.store.gates;
    const groups = Array.from({ length: 1_000 }, (_, at) => `group ${at}`);
    for (let at = 0; at < 300; at++) starts.note(new Map(groups.map((group) => [group, 1])), T0 + at * 100);
    const used = (at: number) => RATE.limit - starts.room('group 7', RATE, 0, T0 + at);
    return [used(30_000), used(60_000), used(75_000), used(29_900 + 60_000)];
  });
  expect(merged[0]).toBe(300);
  expect(merged[1]).toBeGreaterThanOrEqual(299);
  expect(merged[2]).toBeGreaterThanOrEqual(149);
  expect(merged[2]).toBeLessThan(200);
  expect(merged[3]).toBe(0);
});

it('starts are forgotten when no group has a rate any more', async () => {
  const queue = await ratedQueue();
  await queue.inside(({ q }) => q.store.gates.started(['a'], T0));
  await server.configure(queue.name, { groups: { order: 'fair' } });
  expect(await queue.rows('SELECT id FROM group_starts')).toEqual([]);
});

it('a row of starts that cannot be read stops nothing', async () => {
  const queue = await ratedQueue();
  await queue.inside(({ q, sql }) => {
    q.store.gates.started(['a'], T0);
    sql.exec("UPDATE group_starts SET data = 'x'").toArray();
  });
  await queue.evict();
  expect(await queue.claim()).toHaveLength(1);
  expect(await queue.inside(({ q }) => q.store.gates.starts.room('a', RATE, 0, T0))).toBe(10);
});

it('a claim writes one row, however many characters the groups with starts need', async () => {
  const queue = await ratedQueue();
  const written = await queue.inside((inside) => {
    const { sql, written } = CountingSql.over(inside.sql);
    const period = 86_400_000;
    const sizes = { startRows: 100, startChars: 10_000 };
    const starts = new GroupStarts(sql, () => ({ shortest: period, longest: period }), sizes);
    const name = (n: number) => `${'字'.repeat(50)} ${n}`;
    for (let claim = 0; claim < 10; claim++) {
      starts.note(new Map(Array.from({ length: 100 }, (_, n) => [name(100 * claim + n), 1])), T0 + claim);
    }
    const claims = (from: number) => {
      written.take();
      for (let claim = 0; claim < 10; claim++)
        starts.note(new Map([[name(claim), 1]]), T0 + (from + claim) * 1_000_000);
      return written.take();
    };
    const live = claims(1);
    starts.forget();
    return { live, fresh: claims(20), room: starts.room(name(0), { limit: 10, period_ms: period }, 0, T0 + 1) };
  });
  expect(written).toEqual({ live: 10, fresh: 10, room: 7 });
});
