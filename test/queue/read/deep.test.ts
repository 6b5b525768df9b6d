/** What an earlier release has stored too deeply nested breaks neither its job nor a list. */
import { describe, expect, it } from 'vitest';
import { freshName, TestQueue } from '../../support/queue';
import { server, V1 } from '../../support/server';

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

describe('a job whose result nests very deeply', () => {
  it.each([3_000, 20_000])('is shown without it, alone and in lists: %s levels', async (levels) => {
    const queue = new TestQueue(freshName('deep'));
    const deep = await queue.add();
    const plain = await queue.add();
    await queue.claim({ count: 2 });
    await queue.ack(deep, { result: nested(levels) });
    await queue.ack(plain, { result: '1' });
    const shown = await server.job(deep);
    expect(shown).toMatchObject({ state: 'completed' });
    expect(JSON.stringify(shown.result)).toContain('{"truncated":true,"max_depth":100}');
    expect(await server.job(plain)).toMatchObject({ state: 'completed', result: 1 });
    const listed = await server.ok(200, 'GET', `${V1}/jobs?queue=${queue.name}`);
    expect(listed.jobs).toBeInstanceOf(Array);
    await server.ok(200, 'GET', `${V1}/jobs/${deep}/result`);
  });
});

describe('a job whose error has details that nest very deeply', () => {
  it('is shown with what can be shown', async () => {
    const queue = new TestQueue(freshName('deep'));
    const id = await queue.add();
    await queue.claim();
    await queue.nack(id, { message: 'no', details: [1] });
    await queue.inside(({ sql }) => {
      sql.exec(`UPDATE jobs SET history = replace(history, '[1]', ?)`, nested(8_000)).toArray();
    });
    const shown = await server.job(id);
    expect(shown.errors).toMatchObject([{ message: 'no' }]);
    await server.ok(200, 'GET', `${V1}/jobs?queue=${queue.name}`);
  });
});
