/** What is never deleted: by its queue's settings, by its own word, and by the preset of its retry policy. */

import { beforeEach, describe, expect, it } from 'vitest';
import { TocsinClient } from '../../../../src/client';
import { clock, DAY, T0 } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { type Json, server, TestServer, V1 } from '../../../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

/** Nearly a hundred years. */
const AGES = 36_499 * DAY;
const FOREVER = { completed: 'forever', cancelled: 'forever', discarded: 'forever' };
const UNBOUNDED = { retention: { max_age: 'forever', max_count: null } };

let queue: TestQueue;
beforeEach(() => {
  clock.set(T0);
  queue = new TestQueue();
});

const status = async (id: string) => (await server.call('GET', `${V1}/jobs/${id}`)).status;
const settings = (name = queue.name) => server.ok(200, 'GET', `${V1}/queues/${name}/config`);

async function end(how: 'completed' | 'cancelled' | 'failed', options: Json = {}): Promise<string> {
  const id = await server.enqueue(queue.name, { options });
  if (how === 'cancelled') await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
  else {
    const [taken] = await server.takeIds(queue.name);
    await (how === 'completed' ? server.ack(taken) : server.nack(taken));
  }
  return id;
}
const discard = (options: Json = {}) => end('failed', { retry: { max_attempts: 1 }, ...options });
const bury = (options: Json = {}) =>
  end('failed', { ...options, retry: { max_attempts: 1, on_exhaustion: 'dead_letter', ...(options.retry as Json) } });
const preset = (name = 'zzz') => ({ retry: { preset: name, max_attempts: 1 } });

/** The states of these jobs after the longest time. */
async function afterAges(...ids: string[]): Promise<unknown[]> {
  await queue.evict();
  clock.set(T0 + AGES);
  await queue.alarm();
  await queue.alarm();
  return Promise.all(ids.map((id) => server.state(id)));
}

describe('a queue that keeps everything', () => {
  it('says so in its settings, removes nothing by age or number, and arms no alarm for it', async () => {
    const { config } = await server.configure(queue.name, { retention: FOREVER, dead_letter: UNBOUNDED });
    expect(config).toEqual({ retention: FOREVER, dead_letter: UNBOUNDED });
    expect(await settings()).toMatchObject({ config, effective: config });
    const ids = [await end('completed'), await end('cancelled'), await discard(), await bury()];
    await queue.passTo(T0 + DAY);
    expect(await queue.armedAt()).toBeNull();
    expect(await afterAges(...ids)).toEqual(['completed', 'cancelled', 'discarded', 'discarded']);
    const { retention } = await server.ok(200, 'GET', `${V1}/dead-letter/stats`);
    expect(retention).toMatchObject({
      max_age: 'P180D',
      by_queue: { [queue.name]: { max_age: 'forever', max_count: null } },
    });
  });

  it('is set by a word for all ends, for all queues, and taken back', async () => {
    await server.ok(200, 'PUT', `${V1}/queues/_default/config`, { retention: 'forever', dead_letter: UNBOUNDED });
    const id = await end('completed');
    expect((await settings()).effective).toMatchObject({ retention: FOREVER, dead_letter: UNBOUNDED });
    await server.configure(queue.name, { dead_letter: { retention: { max_count: 7, max_age: '1d' } } });
    const own = await server.configure(queue.name, { dead_letter: { retention: { max_count: 'default' } } });
    expect(own.config).toEqual({ dead_letter: { retention: { max_age: 'P1D' } } });
    expect((await settings()).effective).toMatchObject({ dead_letter: { retention: { max_count: null } } });
    await server.ok(200, 'PUT', `${V1}/queues/_default/config`, { retention: null, dead_letter: null });
    expect((await settings()).effective).toMatchObject({
      retention: { completed: 'P7D' },
      dead_letter: { retention: { max_count: 10_000 } },
    });
    expect(await afterAges(id)).toEqual(['none']);
  });

  it('stores numbers that an earlier version reads', async () => {
    await server.configure(queue.name, { retention: FOREVER, dead_letter: UNBOUNDED });
    const id = await server.enqueue(queue.name, { options: { retention: { completed: 'forever' } } });
    const [{ value } = { value: '{}' }] = await queue.rows<{ value: string }>(
      "SELECT value FROM meta WHERE key = 'config'",
    );
    const stored = JSON.parse(value);
    expect(stored.retention.completed).toBe(36_500 * DAY);
    expect(stored.dead_letter.max_count).toBeGreaterThan(1e12);
    expect(JSON.parse((await queue.get(id)).body).retention).toEqual({ completed: 'P36500D' });
  });

  it('needs the scope of removals to keep less again', async () => {
    const guarded = TestServer.with({ API_KEYS: JSON.stringify([{ key: 'k', scopes: ['data:read', 'data:write'] }]) });
    const put = async (change: Json) => {
      const answer = await guarded.call('PUT', `${V1}/queues/${queue.name}/config`, change, {
        Authorization: 'Bearer k',
      });
      return answer.body.error?.details?.field ?? answer.status;
    };
    await queue.add();
    expect(await put({ retention: 'forever', dead_letter: UNBOUNDED })).toBe(200);
    expect(await put({ retention: { completed: 'P36499D' } })).toBe('retention.completed');
    expect(await put({ dead_letter: { retention: { max_count: 10_000_000 } } })).toBe(
      'dead_letter.retention.max_count',
    );
    expect(await put({ retention: null, dead_letter: null, default_retry: { preset: 'zzz' } })).toBe(
      'retention.completed',
    );
    await server.configure(queue.name, { retention: null, dead_letter: null, default_retry: { preset: 'zzz' } });
    expect(await put({ default_retry: { preset: 'ojs' } })).toBe('retention.discarded');
  });

  it.each<[Json, string]>([
    [{ retention: 'ever' }, 'retention'],
    [{ retention: { completed: 'Forever' } }, 'retention.completed'],
    [{ dead_letter: { retention: { max_age: 'never' } } }, 'dead_letter.retention.max_age'],
    [{ dead_letter: { retention: { max_count: 'forever' } } }, 'dead_letter.retention.max_count'],
    [{ dead_letter: { retention: { max_count: 1.5 } } }, 'dead_letter.retention.max_count'],
    [{ dead_letter: { retention: { max_count: 10_000_001 } } }, 'dead_letter.retention.max_count'],
    [{ visibility_timeout: 'forever' }, 'visibility_timeout'],
  ])('is not said by %j', async (change, field) => {
    const refused = await server.refusal('PUT', `${V1}/queues/${queue.name}/config`, change);
    expect(refused).toEqual({ status: 400, code: 'invalid_request', field });
    expect((await settings()).config).toEqual({});
  });
});

describe('a job that is kept for ever by its own word', () => {
  it('is shown so, and stays, whatever its queue keeps', async () => {
    const retention = { completed: 'forever', dead_letter: 'forever', cancelled: '1d' };
    const service = {
      fetch: (url: string, init?: RequestInit) => Promise.resolve(server.send(new Request(url, init))),
    };
    const tocsin = new TocsinClient({ service });
    const made = await tocsin.enqueue('test.echo', [], {
      queue: queue.name,
      retention: { completed: 'forever', deadLetter: 'forever', cancelled: '1d' },
    });
    expect((await server.job(made.id)).retention).toEqual(retention);
    await server.complete(queue.name);
    const kept = [made.id, await bury({ retention })];
    const gone = [await end('cancelled', { retention }), await end('completed')];
    await server.configure(queue.name, { dead_letter: { retention: { max_count: 0 } } });
    expect(await afterAges(...kept, ...gone)).toEqual(['completed', 'discarded', 'none', 'none']);
    const entry = { name: queue.name, expression: '@daily', type: 'test.echo', queue: queue.name, retention };
    await server.ok(201, 'POST', `${V1}/cron`, entry);
    expect((await server.ok(200, 'GET', `${V1}/cron/${queue.name}`)).options).toMatchObject({ retention });
  });

  it('is no longer once it waits and says less, which takes the scope of removals', async () => {
    const id = await server.enqueue(queue.name, { options: { delay_until: '+PT1H' } });
    const patched = await server.ok(200, 'PATCH', `${V1}/jobs/${id}`, { retention: { cancelled: 'forever' } });
    expect(patched.job).toMatchObject({ retention: { cancelled: 'forever' } });
    const guarded = TestServer.with({ API_KEYS: JSON.stringify([{ key: 'k', scopes: ['data:write'] }]) });
    const less = { retention: { cancelled: 'P36499D' } };
    const refused = await guarded.call('PATCH', `${V1}/jobs/${id}`, less, { Authorization: 'Bearer k' });
    expect(refused).toMatchObject({ status: 403, body: { error: { details: { field: 'retention.cancelled' } } } });
    await server.ok(200, 'PATCH', `${V1}/jobs/${id}`, { retention: { cancelled: '1d' } });
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    expect(await afterAges(id)).toEqual(['none']);
  });

  it('does not take the place of another dead letter', async () => {
    await server.configure(queue.name, { dead_letter: { retention: { max_count: 2 } } });
    const own = { retention: { dead_letter: 'forever' } };
    const ids: string[] = [];
    for (let n = 0; n < 9; n++) {
      clock.set(T0 + n);
      ids.push(await bury(n % 3 === 0 ? own : n % 3 === 1 ? { retention: { dead_letter: '9d' } } : {}));
    }
    const left = [];
    for (const [n, id] of ids.entries()) if ((await status(id)) === 200) left.push(n);
    expect(left).toEqual([0, 3, 6, 7, 8]);
  });
});

describe('the preset zzz', () => {
  it.each(['queue', '_default'])(
    'of %s keeps what is discarded, dead letters too, as many as there are',
    async (of) => {
      const name = of === 'queue' ? queue.name : of;
      await server.ok(200, 'PUT', `${V1}/queues/${name}/config`, { default_retry: { preset: 'zzz', max_attempts: 1 } });
      const dead = [await end('failed'), await end('failed')];
      const { effective } = await settings();
      expect(effective).toMatchObject({
        retention: { completed: 'P7D', discarded: 'forever', cancelled: 'P7D' },
        dead_letter: UNBOUNDED,
      });
      const gone = [await end('completed'), await end('cancelled')];
      expect(await afterAges(...dead, ...gone)).toEqual(['discarded', 'discarded', 'none', 'none']);
    },
  );

  it('of a job does so for that job alone, and no other preset does', async () => {
    const kept = [await bury(preset()), await discard({ retry: { ...preset().retry, on_exhaustion: 'discard' } })];
    const gone = [await bury(preset('chasqui')), await bury(), await discard(), await end('completed', preset())];
    expect(await afterAges(...kept, ...gone)).toEqual(['discarded', 'discarded', 'none', 'none', 'none', 'none']);
  });

  it('gives way to what the job or a setting says', async () => {
    await server.configure(queue.name, { default_retry: { preset: 'zzz' }, retention: { discarded: '2d' } });
    const kept = await bury(preset());
    const said = [
      await discard({ retry: { ...preset().retry, on_exhaustion: 'discard' } }),
      await bury({ ...preset(), retention: { dead_letter: '1d' } }),
    ];
    await queue.passTo(T0 + 3 * DAY);
    expect(await Promise.all([kept, ...said].map(status))).toEqual([200, 404, 404]);
    await server.configure(queue.name, { dead_letter: { retention: { max_count: 1 } } });
    clock.set(T0 + 4 * DAY);
    const last = await bury(preset());
    expect(await Promise.all([kept, last].map(status))).toEqual([404, 200]);
  });
});
