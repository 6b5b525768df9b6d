import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { routeCandidate } from '../../src/job/ids';

let made = 0;
const fresh = () => env.DIRECTORY.getByName(`directory-${++made}`);
const listed = async (directory: ReturnType<typeof fresh>) => (await directory.list({ limit: 10 })).queues;

describe('the directory', () => {
  it('gives a queue its number once, and keeps it', async () => {
    const directory = fresh();
    const answers = await Promise.all(Array.from({ length: 5 }, () => directory.register('mail')));
    expect(new Set(answers.map(({ route }) => route)).size).toBe(1);
    await evictDurableObject(directory);
    expect(await directory.register('mail')).toEqual(answers[0]);
    expect(await listed(directory)).toEqual([answers[0]]);
    expect(await directory.resolve([answers[0]?.route as number])).toEqual([answers[0]]);
  });

  it('gives two queues whose numbers meet different ones, and finds both again', async () => {
    const directory = fresh();
    await directory.register('somebody');
    // Takes the numbers that the next queue would try first.
    await runInDurableObject(directory, (_, { storage }) => {
      for (const probe of [0, 1]) {
        storage.sql.exec(
          'INSERT INTO queues (route, name, created_at) VALUES (?, ?, 0)',
          routeCandidate('mail', probe),
          `squatter-${probe}`,
        );
      }
    });
    const mail = await directory.register('mail');
    expect(mail.route).toBe(routeCandidate('mail', 2));
    expect(await directory.resolve([mail.route])).toMatchObject([{ name: 'mail' }]);
    expect(await directory.resolve([routeCandidate('mail', 0)])).toMatchObject([{ name: 'squatter-0' }]);
    await evictDurableObject(directory);
    expect(await directory.register('mail')).toEqual(mail);
  });

  it('lists queues by name, and only those that registered', async () => {
    const directory = fresh();
    expect(await listed(directory)).toEqual([]);
    expect(await directory.resolve([7])).toEqual([]);
    for (const name of ['b', 'a.c', 'a']) await directory.register(name);
    expect((await listed(directory)).map(({ name }) => name)).toEqual(['a', 'a.c', 'b']);
    expect(await directory.resolve([7])).toEqual([]);
  });

  it('writes nothing when it is only asked', async () => {
    const directory = fresh();
    await directory.list({ limit: 10 });
    await directory.resolve([1]);
    const tables = await runInDurableObject(directory, (_, { storage }) =>
      storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'queues'").toArray(),
    );
    expect(tables).toEqual([]);
  });

  it('forgets everything when it is emptied, and continues', async () => {
    const directory = fresh();
    await directory.register('mail');
    await directory.reset();
    expect(await listed(directory)).toEqual([]);
    expect(await directory.register('mail')).toMatchObject({ name: 'mail' });
  });
});

describe('the number of a queue', () => {
  it('has 32 bits, depends only on the name, and moves on with each probe', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 128 }), (name) => {
        const probes = [0, 1, 2, 3].map((probe) => routeCandidate(name, probe));
        for (const route of probes) expect(Number.isInteger(route) && route >= 0 && route < 2 ** 32).toBe(true);
        expect(routeCandidate(name, 1)).toBe(probes[1]);
        expect(new Set(probes).size).toBeGreaterThan(1);
      }),
    );
  });

  it('does not change, because ids already given carry it', () => {
    expect(routeCandidate('default', 0)).toBe(2470140894);
  });
});
