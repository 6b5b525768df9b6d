/** API keys made at run time: who may make which, what ends them, and what isolates ask of the directory. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it, vi } from 'vitest';
import { TocsinClient } from '../../../src/client';
import type { KeyStore } from '../../../src/directory/keys';
import { clock, DAY, HOUR, iso, MINUTE, SECOND, T0 } from '../../support/clock';
import { freshName } from '../../support/queue';
import { rowsWritten } from '../../support/rows';
import { type Json, server, TestServer, V1 } from '../../support/server';
import { SocketClient, StreamReader } from '../../support/streams';

server.emptyBeforeEach();
clock.startAtT0();

const KEYS = `${V1}/admin/keys`;
const API_KEYS = JSON.stringify([
  { key: 'root', name: 'Root' },
  { key: 'clerk', role: 'operator', scopes: ['admin:keys'] },
  { key: 'operator', role: 'operator' },
]);
/** Another isolate: it knows what it has asked for itself. */
const isolate = (variables: Json = {}) => TestServer.with({ API_KEYS, ...variables });
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
const directory = () => env.DIRECTORY.getByName('directory');

type Made = Json & { id: string; key: string };
const create = async (body: Json = {}, from = isolate(), by = 'root') =>
  (await from.ok(201, 'POST', KEYS, { name: 'acme web', role: 'operator', ...body }, bearer(by))) as unknown as Made;
const list = async (to = isolate()) => (await to.ok(200, 'GET', KEYS, undefined, bearer('root'))).keys as Json[];
const statusOf = async (to: TestServer, key: string, path = '/jobs') =>
  (await to.call('GET', V1 + path, undefined, bearer(key))).status;
const refusalOf = async (to: TestServer, method: string, path: string, body: unknown, key = 'root') => {
  const { status, body: answer } = await to.call(method, path, body, bearer(key));
  return [status, answer.error?.code, answer.error?.details?.field ?? answer.error?.details?.required_scope];
};

/** Isolates whose directory counts, or fails, the questions for the list. */
function watched() {
  const seen = { asked: 0, lists: 0, fails: false };
  const getByName = (name: string) => {
    const stub = env.DIRECTORY.getByName(name);
    return new Proxy(stub, {
      get(_, verb) {
        if (verb === 'list') seen.lists++;
        if (verb === 'keys') {
          seen.asked++;
          if (seen.fails) return () => Promise.reject(new Error('unreachable'));
        }
        const found = Reflect.get(stub, verb) as unknown;
        return typeof found === 'function' ? (...args: unknown[]) => Reflect.apply(found, stub, args) : found;
      },
    });
  };
  return { seen, to: isolate({ DIRECTORY: { getByName } }) };
}

describe('the rate of a key', () => {
  const JOB = { type: 'mail.send', args: [] };
  const jobsFor = (queue: string, count: number) =>
    Array.from({ length: count }, () => ({ ...JOB, options: { queue } }));
  const enqueue = (to: TestServer, key: string, queue: string, count: number, path = '/jobs/batch') =>
    to.call('POST', V1 + path, { jobs: jobsFor(queue, count) }, bearer(key));

  it('bounds the jobs that it enqueues into each queue, by every request that brings some', async () => {
    const { key } = await create({ rate: '5/m' });
    const [to, queue, other] = [isolate({ TOKEN_SECRET: 'x'.repeat(32) }), freshName('rate'), freshName('rate')];
    expect((await enqueue(to, key, queue, 3)).status).toBe(201);
    expect((await to.call('POST', `${V1}/jobs`, jobsFor(queue, 1)[0], bearer(key))).status).toBe(201);
    clock.set(T0 + 10 * SECOND);
    const refused = await enqueue(isolate(), key, queue, 2, '/jobs/bulk');
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'rate_limited', retryable: true } } });
    expect(refused.headers.get('Retry-After')).toBe('51');
    const steps = jobsFor(queue, 2).map((job) => ({ ...job, args: [1] }));
    const workflow = { type: 'chain', steps };
    expect((await to.call('POST', `${V1}/workflows`, workflow, bearer(key))).body.error?.code).toBe('rate_limited');
    expect((await enqueue(to, key, other, 5)).status).toBe(201);
    expect((await enqueue(to, 'root', queue, 50)).status).toBe(201);
    const asked = { enqueue: { type: JOB.type, queue }, expires_in: '10m' };
    for (const status of [201, 429]) {
      const { token } = await to.ok(201, 'POST', `${V1}/tokens`, asked, bearer(key));
      const headers = { ...bearer(token as string), 'Content-Type': 'application/json' };
      const request = new Request(`http://localhost${V1}/jobs`, { method: 'POST', headers, body: JSON.stringify(JOB) });
      expect((await to.send(request)).status).toBe(status);
    }
    clock.set(T0 + MINUTE);
    expect((await enqueue(to, key, queue, 4)).status).toBe(429);
    clock.set(T0 + MINUTE + SECOND);
    expect((await enqueue(to, key, queue, 4)).status).toBe(201);
    const never = await enqueue(to, key, queue, 6);
    expect(never).toMatchObject({ status: 429, body: { error: { retryable: false } } });
    expect(never.headers.get('Retry-After')).toBeNull();
  });

  it('is shown, only becomes lower, and is that of every key that it makes', async () => {
    const { id, key, rate } = await create({ role: 'admin', rate: '60/m' });
    expect([rate, (await list())[0]?.rate]).toEqual(['60/m', '60/m']);
    const change = (wanted: string) => isolate().call('PATCH', `${KEYS}/${id}`, { rate: wanted }, bearer('root'));
    for (const wanted of ['61/m', '60/s', '2/s'])
      expect((await change(wanted)).body.error?.details?.field).toBe('rate');
    expect(await change('60/h')).toMatchObject({ status: 200, body: { rate: '60/h' } });
    for (const [wanted, status] of [
      [undefined, 403],
      ['61/h', 403],
      ['60/m', 403],
      ['60/d', 201],
    ] as const) {
      const body = { name: 'own', role: 'viewer', ...(wanted && { rate: wanted }) };
      expect((await isolate().call('POST', KEYS, body, bearer(key))).status).toBe(status);
    }
    for (const wrong of ['', '0/m', '5', '5/w', '-1/s', 5, { limit: 5 }]) {
      expect(await refusalOf(isolate(), 'POST', KEYS, { name: 'x', role: 'viewer', rate: wrong })).toEqual([
        ...[400, 'invalid_request', 'rate'],
      ]);
    }
  });
});

describe('a key made at run time', () => {
  it('is shown once, stored as a hash, and works everywhere with its role', async () => {
    const made = await create({ queues: ['mail-*'], groups: ['acme'], expires_at: '90d' });
    expect(made.key).toMatch(new RegExp(`^toc_${made.id}_[\\w-]{43}$`));
    const { key, ...shown } = made;
    expect(shown).toEqual({
      ...{ id: made.id, name: 'acme web', role: 'operator', queues: ['mail-*'], groups: ['acme'] },
      scopes: ['data:read', 'data:write', 'admin:read', 'admin:write', 'metrics:read'],
      ...{ created_at: iso(T0), created_by: 'Root', expires_at: iso(T0 + 90 * DAY), used_at: null },
    });
    await evictDurableObject(directory());
    expect(await list()).toEqual([shown]);
    const session = await isolate().ok(200, 'GET', `${V1}/admin/session`, undefined, bearer(key));
    expect(session).toMatchObject({
      ...{ name: 'acme web', role: 'operator', key_id: made.id, bounds: { queues: ['mail-*'], groups: ['acme'] } },
    });
    const log = await isolate().ok(200, 'GET', `${V1}/admin/audit`, undefined, bearer('root'));
    expect(log.items?.[0]).toMatchObject({ action: 'key.create', actor: { name: 'Root' }, target: made.id });
    const secret = key.slice(13);
    expect(JSON.stringify([log, await list()])).not.toContain(secret);
  });

  it('works for a login, and names itself in the audit log', async () => {
    const { id, key } = await create();
    const body = { key };
    const login = await isolate().call('POST', `${V1}/admin/session`, body, { Origin: 'http://localhost' });
    expect(login).toMatchObject({ status: 200, body: { key_id: id } });
    const cookie = (login.headers.get('Set-Cookie') as string).split(';')[0] as string;
    expect((await isolate().call('GET', `${V1}/jobs`, undefined, { Cookie: cookie })).status).toBe(200);
    const queue = freshName('keys');
    await isolate().ok(201, 'POST', `${V1}/queues`, { name: queue }, bearer(key));
    await isolate().ok(200, 'POST', `${V1}/admin/queues/${queue}/pause`, undefined, bearer(key));
    const log = await isolate().ok(200, 'GET', `${V1}/admin/audit?action=queue.pause`, undefined, bearer('root'));
    expect(log.items?.[0]).toMatchObject({ actor: { name: 'acme web', key_hint: id } });
  });

  it.each<[string, Json, string]>([
    ['without a name', { name: undefined }, 'name'],
    ['with a name of blanks', { name: '  ' }, 'name'],
    ['with neither role nor scopes', { role: undefined }, 'role'],
    ['with an unknown role', { role: 'boss' }, 'role'],
    ['with an unknown scope', { scopes: ['data:wirte'] }, 'scopes[0]'],
    ['without any scope', { role: undefined, scopes: [] }, 'scopes'],
    ['that can only reveal', { role: undefined, scopes: ['data:reveal'] }, 'scopes'],
    ['that is bound away from all its scopes', { role: undefined, scopes: ['metrics:read'], queues: ['a'] }, 'scopes'],
    ['that has expired', { expires_at: '2040-08-31T00:00:00Z' }, 'expires_at'],
    ['with an end that is a number', { expires_at: 1 }, 'expires_at'],
    ['with no patterns', { queues: [] }, 'queues'],
    ['with a star inside', { types: ['a*b'] }, 'types[0]'],
    ['with too many patterns', { groups: Array.from({ length: 51 }, (_, n) => `g${n}`) }, 'groups'],
    ['with an unknown member', { queue: 'a' }, 'queue'],
  ])('%s is refused', async (_, change, field) => {
    const body = { name: 'x', role: 'viewer', ...change };
    expect(await refusalOf(isolate(), 'POST', KEYS, body)).toEqual([400, 'invalid_request', field]);
    expect(await list()).toEqual([]);
  });

  it('gets no more than its maker has, and its maker needs admin:keys', async () => {
    expect(await refusalOf(isolate(), 'POST', KEYS, { name: 'x', role: 'viewer' }, 'operator')).toEqual([
      ...[403, 'forbidden', 'admin:keys'],
    ]);
    const more = { name: 'x', role: 'viewer', scopes: ['admin:purge'] };
    expect(await refusalOf(isolate(), 'POST', KEYS, more, 'clerk')).toEqual([403, 'forbidden', 'admin:purge']);
    const { key } = await create({ role: 'viewer', scopes: ['admin:keys'] }, isolate(), 'clerk');
    expect(await refusalOf(isolate(), 'POST', KEYS, { name: 'y', role: 'operator' }, key)).toEqual([
      ...[403, 'forbidden', 'data:write'],
    ]);
    const { id } = await create({ role: 'admin' });
    const rotated = await refusalOf(isolate(), 'POST', `${KEYS}/${id}/rotate`, {}, key);
    expect(rotated).toEqual([403, 'forbidden', 'data:write']);
    expect(await list()).toHaveLength(2);
  });

  it.each([
    'toc_',
    `toc_abcdefgh_${'x'.repeat(43)}`,
    `toc_abcdefgh_${'x'.repeat(42)}`,
    `TOC_abcdefgh_${'x'.repeat(43)}`,
  ])('is not %s', async (forged) => {
    await create();
    expect(await statusOf(isolate(), forged)).toBe(401);
  });

  it('needs its own secret, whatever id stands before it', async () => {
    const [one, two] = [await create(), await create()];
    const mixed = `toc_${one.id}_${two.key.slice(13)}`;
    expect(await statusOf(isolate(), mixed)).toBe(401);
    expect(await statusOf(isolate(), one.key)).toBe(200);
    const used = (await list()).filter(({ used_at }) => used_at !== null);
    expect(used.map(({ id }) => id)).toEqual([one.id]);
  });
});

describe('the client', () => {
  it('creates, lists, changes, rotates and deletes keys', async () => {
    const to = isolate();
    const fetch = async (url: string | URL | Request, init?: RequestInit) => await to.send(new Request(url, init));
    const { keys } = new TocsinClient({ url: 'http://localhost', key: 'root', fetch });
    const made = await keys.create({ name: 'acme web', role: 'viewer', groups: ['acme-*'], expiresAt: '90d' });
    expect(made).toMatchObject({ groups: ['acme-*'], expiresAt: iso(T0 + 90 * DAY), createdBy: 'Root', usedAt: null });
    expect(await keys.change(made.id, { groups: ['acme-1'] })).toMatchObject({ groups: ['acme-1'] });
    const rotated = await keys.rotate(made.id, { overlap: '1h' });
    expect([await statusOf(to, made.key), await statusOf(to, rotated.key, '/admin/session')]).toEqual([
      ...[await statusOf(to, rotated.key), 200],
    ]);
    const found = [];
    for await (const key of keys.list({ pageSize: 1 })) found.push(key.id);
    expect(found).toEqual([made.id]);
    expect(await keys.get(made.id)).toMatchObject({ formerUntil: iso(T0 + HOUR) });
    await keys.delete(made.id);
    await expect(keys.get(made.id)).rejects.toMatchObject({ status: 404 });
  });
});

describe('a change of a key', () => {
  it('narrows it, and never widens it', async () => {
    const { id } = await create({ queues: ['mail-*', 'sms'], expires_at: '30d' });
    const path = `${KEYS}/${id}`;
    const patch = async (body: Json) => await isolate().ok(200, 'PATCH', path, body, bearer('root'));
    expect(await patch({ name: 'narrow', queues: ['mail-eu-*'], types: ['email.*'], expires_at: '7d' })).toMatchObject({
      ...{ name: 'narrow', queues: ['mail-eu-*'], types: ['email.*'], expires_at: iso(T0 + 7 * DAY) },
    });
    const refused: [Json, string][] = [
      [{ queues: ['mail-*'] }, 'queues'],
      [{ queues: ['mail-eu-1', 'sms'] }, 'queues'],
      [{ types: ['*'] }, 'types'],
      [{ expires_at: '8d' }, 'expires_at'],
      [{ scopes: ['admin:purge'] }, 'scopes'],
      [{ role: 'admin' }, 'role'],
      [{ queues: null }, 'queues'],
    ];
    for (const [body, field] of refused) {
      expect(await refusalOf(isolate(), 'PATCH', path, body), field).toEqual([400, 'invalid_request', field]);
    }
    expect(await list()).toMatchObject([{ name: 'narrow', queues: ['mail-eu-*'], types: ['email.*'] }]);
    const unknown = await refusalOf(isolate(), 'PATCH', `${KEYS}/abcdefgh`, { name: 'x' });
    expect(unknown).toEqual([404, 'not_found', undefined]);
  });

  it('gives it a new secret, beside which the old one works for the overlap', async () => {
    const { id, key } = await create();
    const to = isolate();
    const rotate = async (body: Json) =>
      (await to.ok(200, 'POST', `${KEYS}/${id}/rotate`, body, bearer('root'))) as unknown as Made;
    const next = await rotate({ overlap: '24h' });
    expect(next).toMatchObject({ id, former_until: iso(T0 + DAY) });
    expect([await statusOf(to, key), await statusOf(to, next.key)]).toEqual([200, 200]);
    clock.advance(DAY);
    expect([await statusOf(to, key), await statusOf(to, next.key)]).toEqual([401, 200]);
    const [third, fourth] = [await rotate({ overlap: '1h' }), await rotate({})];
    expect(fourth).not.toHaveProperty('former_until');
    const statuses = [next, third, fourth].map((one) => statusOf(to, one.key));
    expect(await Promise.all(statuses)).toEqual([401, 401, 200]);
    expect(await refusalOf(to, 'POST', `${KEYS}/${id}/rotate`, { overlap: '31d' })).toEqual([
      ...[400, 'invalid_request', 'overlap'],
    ]);
    for (let n = 0; n < 10; n++) await rotate({ overlap: '1h' });
    expect((await refusalOf(to, 'POST', `${KEYS}/${id}/rotate`, { overlap: '1h' })).slice(0, 2)).toEqual([
      409,
      'conflict',
    ]);
  });
});

describe('the end of a key', () => {
  it('reaches other isolates within 30 s when it is revoked', async () => {
    const { id, key } = await create();
    const [here, there] = [isolate(), isolate()];
    expect([await statusOf(here, key), await statusOf(there, key)]).toEqual([200, 200]);
    clock.advance(SECOND);
    await here.ok(204, 'DELETE', `${KEYS}/${id}`, undefined, bearer('root'));
    expect(await statusOf(here, key)).toBe(401);
    clock.at(30 * SECOND - 1);
    expect(await statusOf(there, key)).toBe(200);
    clock.at(30 * SECOND);
    expect(await statusOf(there, key)).toBe(401);
    expect((await here.call('DELETE', `${KEYS}/${id}`, undefined, bearer('root'))).status).toBe(404);
  });

  it('is immediate when it expires, and reported as such', async () => {
    const to = isolate();
    const { key } = await create({ expires_at: '10s' });
    expect(await statusOf(to, key)).toBe(200);
    clock.advance(10 * SECOND);
    const { status, body } = await to.call('GET', `${V1}/jobs`, undefined, bearer(key));
    expect([status, body.error?.message]).toEqual([401, 'This API key has expired.']);
  });

  it('ends open streams and event sockets within 60 s', async () => {
    const { id, key } = await create();
    const [here, there] = [isolate(), isolate()];
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'], now: T0 });
    const stream = await StreamReader.open('/events/stream', bearer(key), there);
    const socket = await SocketClient.open(bearer(key), there);
    await here.ok(204, 'DELETE', `${KEYS}/${id}`, undefined, bearer('root'));
    vi.advanceTimersByTime(15 * SECOND);
    await vi.waitFor(() => expect(stream.comments).toHaveLength(1));
    expect([stream.isOver, socket.closed]).toEqual([false, undefined]);
    vi.advanceTimersByTime(15 * SECOND);
    await vi.waitFor(() => expect(stream.isOver).toBe(true));
    // It may have used the last list while the stream asked for the next one.
    vi.advanceTimersByTime(15 * SECOND);
    await vi.waitFor(() => expect(socket.closed).toEqual({ code: 1008, reason: 'the key has ended' }));
  });

  it('takes the tokens that it made with it', async () => {
    const TOKEN_SECRET = 's'.repeat(32);
    const to = isolate({ TOKEN_SECRET });
    const { id, key } = await create();
    const job = await server.add('keys.job', [], { queue: freshName('keys') });
    const made = await to.ok(201, 'POST', `${V1}/tokens`, { job, read: true }, bearer(key));
    const read = async () => {
      const request = new Request(`http://localhost${V1}/jobs/${job}`, { headers: bearer(made.token as string) });
      return (await to.send(request)).status;
    };
    expect(await read()).toBe(200);
    await to.ok(204, 'DELETE', `${KEYS}/${id}`, undefined, bearer('root'));
    expect(await read()).toBe(401);
  });
});

describe('an isolate', () => {
  it('asks the directory at most once in 30 s for 10,000 requests by ten keys', async () => {
    const made = await Promise.all(Array.from({ length: 10 }, (_, n) => create({ name: `key ${n}` })));
    const { seen, to } = watched();
    const session = async (key: string) => {
      const request = new Request(`http://localhost${V1}/admin/session`, { headers: bearer(key) });
      expect((await to.send(request)).status).toBe(200);
    };
    await session(made[0]?.key as string);
    for (let n = 1; n < 10_000; n++) {
      clock.at(n * 3 - 1);
      await session(made[n % 10]?.key as string);
    }
    expect(seen.asked).toBe(1);
    clock.at(30 * SECOND);
    await Promise.all(made.map(({ key }) => session(key)));
    expect(seen.asked).toBe(2);
    expect((await list()).every(({ used_at }) => used_at !== null)).toBe(true);
  });

  it('asks once for requests that arrive together, and once for all queues that a beginning may mean', async () => {
    const { key } = await create({ queues: ['keys-*', 'mail'] });
    const queue = freshName('keys-');
    await server.add('keys.job', [], { queue });
    const { seen, to } = watched();
    expect(await Promise.all(Array.from({ length: 20 }, () => statusOf(to, key)))).toEqual(Array(20).fill(200));
    expect([seen.asked, seen.lists]).toEqual([1, 0]);
    const { body } = await to.call('GET', `${V1}/jobs`, undefined, bearer(key));
    expect((body.jobs ?? []).map((job) => job.queue)).toContain(queue);
  });

  it('asks for an unknown key at once, but at most every 5 s', async () => {
    const { seen, to } = watched();
    const first = await create();
    expect(await statusOf(to, first.key)).toBe(200);
    clock.advance(5 * SECOND);
    const { key } = await create();
    expect(await statusOf(to, key)).toBe(200);
    expect(seen.asked).toBe(2);
    const forged = `toc_abcdefgh_${'x'.repeat(43)}`;
    for (let n = 0; n < 20; n++) expect(await statusOf(to, forged)).toBe(401);
    expect(seen.asked).toBe(2);
    clock.advance(5 * SECOND);
    for (let n = 0; n < 20; n++) expect(await statusOf(to, forged)).toBe(401);
    expect(seen.asked).toBe(3);
  });

  it('uses its list for 10 min without the directory, then answers 503; keys in API_KEYS work', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const { seen, to } = watched();
    const { key } = await create();
    expect(await statusOf(to, key)).toBe(200);
    seen.fails = true;
    clock.at(10 * MINUTE - 1);
    expect(await statusOf(to, key)).toBe(200);
    clock.at(10 * MINUTE);
    const { status, headers, body } = await to.call('GET', `${V1}/jobs`, undefined, bearer(key));
    expect([status, body.error?.code, headers.get('Retry-After')]).toEqual([503, 'unavailable', '5']);
    expect(await statusOf(to, 'root', '/admin/session')).toBe(200);
    seen.fails = false;
    clock.advance(5 * SECOND);
    expect(await statusOf(to, key)).toBe(200);
  });

  it('answers 503 where it has no list yet', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const { seen, to } = watched();
    const { key } = await create();
    seen.fails = true;
    for (let n = 0; n < 5; n++) expect(await statusOf(to, key)).toBe(503);
    expect(seen.asked).toBe(1);
  });
});

describe('a deployment', () => {
  it('of the version before opens, and takes keys', async () => {
    await server.ok(201, 'POST', `${V1}/queues`, { name: 'kept' });
    await runInDurableObject(directory(), (_, { storage: { sql } }) => {
      sql.exec("DROP TABLE keys; UPDATE meta SET value = '4' WHERE key = 'schema'");
    });
    await evictDurableObject(directory());
    expect(await statusOf(isolate(), (await create()).key, '/queues/kept')).toBe(200);
  });

  it('pays a row for a key, one for its end, and at most one in ten minutes for its use', async () => {
    await create();
    const written = (act: () => Promise<unknown>) => rowsWritten(directory(), act);
    // The audit log has one more for each change by an operator.
    let made: Made | undefined;
    expect(await written(async () => (made = await create()))).toBe(2);
    const { id, key } = made as Made;
    const use = async () => expect(await statusOf(isolate(), key, '/admin/session')).toBe(200);
    expect(await written(use)).toBe(1);
    clock.advance(10 * MINUTE - 1);
    expect(await written(use)).toBe(0);
    clock.advance(1);
    expect(await written(use)).toBe(1);
    const end = () => isolate().ok(204, 'DELETE', `${KEYS}/${id}`, undefined, bearer('root'));
    expect(await written(end)).toBe(2);
  });

  it('has at most 1,000 keys; those that have expired make room', async () => {
    await create();
    await runInDurableObject(directory() as never, (object) => {
      const { keys } = (object as unknown as { life: { keys: KeyStore } }).life;
      const stored = { name: 'x', scopes: ['data:read'], hash: '', created_at: T0, expires_at: T0 + MINUTE } as const;
      for (let n = 0; n < 999; n++) keys.create({ ...stored, id: `id${String(n).padStart(6, '0')}` }, T0);
    });
    const body = { name: 'y', role: 'viewer' };
    expect((await refusalOf(isolate(), 'POST', KEYS, body)).slice(0, 2)).toEqual([409, 'conflict']);
    clock.advance(2 * MINUTE);
    await create();
    expect(await list()).toHaveLength(2);
  });
});
