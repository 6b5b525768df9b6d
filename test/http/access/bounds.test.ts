/** Keys with bounds: two parties share a deployment, and nothing of the one reaches the other, by whichever route. */
import { beforeAll, describe, expect, it } from 'vitest';
import { ROUTES } from '../../../src/http/routes';
import { type Bounds, fits, within } from '../../../src/job/bounds';
import { type Json, TestServer, UNKNOWN_ID, V1 } from '../../support/server';

/** One key by each kind of bound. Acme's are the queues `acme-*`, the types `acme.*` and the group `acme`. */
const KEYS: Record<string, Bounds> = {
  queues: { queues: ['acme-*'] },
  types: { types: ['acme.*'] },
  groups: { groups: ['acme'] },
  all: { queues: ['acme-mail'], types: ['acme.*'], groups: ['acme'] },
};

const server = TestServer.with({
  API_KEYS: JSON.stringify([
    { key: 'root' },
    ...Object.entries(KEYS).map(([key, bounds]) => ({ key, role: 'admin', name: key, ...bounds })),
  ]),
  TOKEN_SECRET: 'n'.repeat(32),
});

const as = (key: string) => ({ Authorization: `Bearer ${key}` });
const call = (key: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  server.call(method, path, body, { ...as(key), ...headers });

async function enqueue(party: 'acme' | 'zeta', queue = `${party}-mail`): Promise<string> {
  const body = { type: `${party}.send`, args: [party], options: { queue, group: party, tags: [party] } };
  const { status, body: answer } = await call('root', 'POST', `${V1}/jobs`, body);
  expect(status).toBe(201);
  return answer.id as string;
}

/** A dead letter of a party, made with the root key. */
async function bury(party: 'acme' | 'zeta', queue: string): Promise<string> {
  const type = `${party}.dead`;
  const retry = { max_attempts: 1, on_exhaustion: 'dead_letter' };
  const job = { type, args: [party], options: { queue, group: party, tags: [party], retry } };
  const { id } = (await call('root', 'POST', `${V1}/jobs`, job)).body;
  await call('root', 'POST', `${V1}/workers/fetch`, { queues: [queue], types: [type], worker_id: 'w' });
  const error = { type: `${party}.Error`, message: `${party} broke` };
  const { status } = await call('root', 'POST', `${V1}/workers/nack`, { job_id: id, error });
  expect(status).toBe(200);
  return id as string;
}

const all = async () => {
  const { body } = await call('root', 'GET', `${V1}/admin/jobs?per_page=100`);
  return JSON.stringify(body.items);
};

/** What the other party has: ids of its jobs, one that waits and one that is gone. */
let zeta: { id: string; gone: string };
let acme: string;

beforeAll(async () => {
  acme = await enqueue('acme');
  const [id, gone] = [await enqueue('zeta'), await enqueue('zeta')];
  await call('root', 'POST', `${V1}/jobs/bulk/cancel`, { job_ids: [gone] });
  const removed = await call('root', 'POST', `${V1}/jobs/bulk/delete`, { job_ids: [gone], confirm: true });
  expect(removed.body).toMatchObject({ items: [{ status: 'deleted' }] });
  zeta = { id, gone };
  for (const queue of ['zeta-mail', 'mixed']) await bury('zeta', queue);
});

const ROUTES_WITH_KEY = ROUTES.filter(({ scope }) => scope !== 'public');

/** A route's path with the other's names. */
const pathOf = (path: string, id: string) =>
  path
    .replace(':id', id)
    .replace(':name', path.includes('/queues/') ? 'zeta-mail' : 'zeta')
    .replace(/:\w+/g, 'zeta');

const BODIES = (id: string): unknown[] => [
  {},
  { ids: [id], job_ids: [id], job_id: id, confirm: true },
  { filter: { ids: [id] }, confirm: true },
  { filter: { queue: 'zeta-mail' }, confirm: true, dry_run: true },
  { filter: { older_than: 'PT0S' }, older_than: 'PT0S', confirm: true, atomicity: 'atomic' },
  { type: 'zeta.send', args: [], options: { queue: 'zeta-mail', group: 'zeta' } },
  { jobs: [{ type: 'zeta.send', args: [], options: { queue: 'zeta-mail', group: 'zeta' } }] },
  { type: 'acme.send', args: [], id, options: { queue: 'acme-mail', group: 'acme' } },
  { queues: ['zeta-mail'], worker_id: 'zeta', job_id: id, job: id, read: true, expires_in: '15m' },
];

const QUERIES = ['', '?queue=zeta-mail', '?type=zeta.send', '?group=zeta', '?q=zeta', '?counts=true&per_page=100'];

/** What an answer says beside what the request itself brought. */
const said = (body: unknown, ...brought: string[]) =>
  brought.reduce((text, part) => text.replaceAll(part, ''), JSON.stringify(body));

/** What a key with bounds gets of each route that is not about one job. The others are refused to it. */
const KINDS: Record<string, string> = {
  any: 'GET /ojs/manifest, GET middleware, GET admin/session, POST tokens, POST /mcp, POST /ojs/mcp',
  enqueue: 'POST jobs, POST jobs/batch, POST jobs/bulk',
  list: `GET jobs, GET jobs/count, GET admin/jobs, POST jobs/results,
    POST jobs/bulk/cancel, POST jobs/bulk/retry, POST jobs/bulk/delete,
    POST admin/jobs/bulk/cancel, POST admin/jobs/bulk/retry, POST admin/jobs/bulk/delete,
    POST dead-letter/retry, DELETE dead-letter, POST dead-letter/purge, POST admin/dead-letter/retry,
    DELETE admin/dead-letter, GET dead-letter, GET admin/dead-letter, GET /v1/dead-letter,
    GET admin/failures, GET admin/failures/:fingerprint, POST admin/failures/:fingerprint/redrive, POST admin/failures/:fingerprint/discard`,
  queue: `GET queues/:name, DELETE queues/:name, GET queues/:name/stats, GET queues/:name/config,
    PUT queues/:name/config, GET queues/:name/priority-stats, GET queues/:name/events, GET queues/:name/groups,
    POST queues/:name/pause, POST queues/:name/resume, POST queues/:name/drain, POST queues/:name/purge,
    GET queues/:name/groups/:group, PUT queues/:name/groups/:group, DELETE queues/:name/groups/:group,
    POST queues/:name/groups/:group/pause, POST queues/:name/groups/:group/resume, GET admin/queues/:name,
    POST admin/queues/:name/pause, POST admin/queues/:name/resume, PUT admin/queues/:name/config,
    DELETE admin/queues/:name/jobs`,
  cron: `GET cron/:name, GET crons/:name, DELETE cron/:name, DELETE crons/:name, GET cron/:name/history,
    GET crons/:name/history, POST cron/:name/pause, POST crons/:name/pause, POST cron/:name/resume,
    POST crons/:name/resume`,
  workflow: `POST workflows, GET workflows/:id, DELETE workflows/:id, POST workflows/:id/cancel,
    GET workflows/:id/progress`,
  work: `POST workers/fetch, POST jobs/fetch, POST workers/heartbeat, POST workers/beat, POST workers/ack,
    POST workers/nack, POST workers/report, POST workers/progress, GET workers/socket`,
  queues: `GET queues, GET admin/queues, GET /v1/queues, GET dead-letter/stats, GET admin/dead-letter/stats,
    GET cron, GET crons`,
};

const ABOUT_ONE_JOB = /^[A-Z]+ (admin\/)?(jobs|dead-letter|events|checkpoints|ojs\/v1\/checkpoints)\/:id/;

it('each route says what a key with bounds gets of it; one that does not is refused', () => {
  const short = ({ method, path }: { method: string; path: string }) => `${method} ${path.replace(`${V1}/`, '')}`;
  const said = ROUTES_WITH_KEY.map((route) => [short(route), route.bound ?? 'none']);
  const listed = Object.entries(KINDS).flatMap(([kind, routes]) => routes.split(/,\s+/).map((route) => [route, kind]));
  const kinds = new Map(listed as [string, string][]);
  const expected = said.map(([route = '']) => [
    route,
    kinds.get(route) ?? (ABOUT_ONE_JOB.test(route) ? 'job' : 'none'),
  ]);
  expect(said).toEqual(expected);
  expect([...kinds.keys()].filter((route) => !said.some(([known]) => known === route))).toEqual([]);
});

describe.each(Object.keys(KEYS))('a key that is bound by %s', (key) => {
  it('learns nothing of another party and changes nothing of it, by any route', async () => {
    const before = await all();
    for (const { method, path, bound } of ROUTES_WITH_KEY) {
      const bodies = method === 'GET' ? [undefined] : BODIES(zeta.id);
      const queries = method === 'GET' ? QUERIES : [''];
      for (const body of bodies) {
        for (const query of queries) {
          const sent = pathOf(path, zeta.id) + query;
          const answer = await call(key, method, sent, body);
          const name = `${method} ${sent} ${JSON.stringify(body)}: ${answer.status} ${JSON.stringify(answer.body)}`;
          const isWhole = ['list', 'queues', 'work', 'workflow', 'cron', 'any', 'enqueue'].includes(bound ?? '');
          if (!isWhole) expect([name, answer.status === 403 || answer.status === 404]).toEqual([name, true]);
          const heads = [...answer.headers].filter(([header]) => header !== 'x-request-id');
          const asked = sent + JSON.stringify(body ?? '');
          const names = ['zeta-mail', 'zeta.send', '"zeta"'].filter((part) => asked.includes(part.replaceAll('"', '')));
          // The name in the path of a schedule.
          if (bound === 'cron') names.push('Cron zeta not found.');
          const text = said([answer.body, heads], zeta.id, sent, ...names);
          expect([name, text.includes('zeta')]).toEqual([name, false]);
          // What it asked for by the other's names alone is empty.
          if (query.includes('zeta') && answer.status === 200 && bound === 'list') {
            expect([name, answer.body.jobs ?? answer.body.items ?? []]).toEqual([name, []]);
          }
        }
      }
    }
    expect(await all()).toBe(before);
  });

  it("gets for another's job, whether it exists or not, the answer of an unknown id", async () => {
    for (const { method, path } of ROUTES_WITH_KEY.filter((route) => route.bound === 'job')) {
      for (const body of method === 'GET' ? [undefined] : [undefined, {}, '[', { override: { queue: 'zeta-mail' } }]) {
        const [of, gone, unknown] = await Promise.all(
          [zeta.id, zeta.gone, UNKNOWN_ID].map(async (id) => {
            const answer = await call(key, method, pathOf(path, id), body);
            const { request_id: _, ...error } = answer.body.error ?? { request_id: '' };
            return said({ status: answer.status, error }, id);
          }),
        );
        expect([method, path, of]).toEqual([method, path, unknown]);
        expect([method, path, gone]).toEqual([method, path, unknown]);
        expect(unknown).toContain('404');
      }
    }
  });

  it('lists and counts what lies inside', async () => {
    const inside = key === 'all' || key === 'queues' ? 'acme-mail' : 'shared';
    const own = inside === 'shared' ? await enqueue('acme', 'shared') : acme;
    if (inside === 'shared') await enqueue('zeta', 'shared');
    const { body } = await call(key, 'GET', `${V1}/jobs`);
    const ids = (body.jobs ?? []).map(({ id }) => id);
    expect(ids).toContain(own);
    expect((body.jobs ?? []).every(({ type, queue, group }) => fits(KEYS[key], { type, queue, group } as Json))).toBe(
      true,
    );
    const { body: counted } = await call(key, 'GET', `${V1}/jobs/count`);
    expect(counted.count).toBe(ids.length);
    const { body: items } = await call(key, 'GET', `${V1}/admin/jobs?counts=true`);
    expect(items.items).toHaveLength(ids.length);
    expect(Object.values(items.counts as Record<string, number>).reduce((sum, count) => sum + count)).toBe(ids.length);
    expect([body, items].map((list) => 'searched' in list)).toEqual(
      [key === 'queues', key === 'queues'].map((it) => it && 'searched' in body),
    );
    const { body: results } = await call(key, 'POST', `${V1}/jobs/results`, { ids: [own, zeta.id] });
    expect(results).toMatchObject({ results: { [own]: {} }, missing: [zeta.id] });
    expect((await call(key, 'GET', `${V1}/jobs/${own}`)).status).toBe(200);
  });

  it('enqueues inside its bounds only, and the refusal says the entry and the bounds', async () => {
    const inside = { type: 'acme.send', args: [], options: { queue: 'acme-mail', group: 'acme' } };
    const outside = { type: 'zeta.send', args: [], options: { queue: 'zeta-mail', group: 'zeta' } };
    expect((await call(key, 'POST', `${V1}/jobs`, inside)).status).toBe(201);
    const refused = { status: 403, body: { error: { code: 'outside_key', details: { bounds: KEYS[key] } } } };
    const before = await all();
    expect(await call(key, 'POST', `${V1}/jobs`, outside)).toMatchObject(refused);
    for (const path of ['batch', 'bulk']) {
      const answer = await call(key, 'POST', `${V1}/jobs/${path}`, { jobs: [inside, outside] });
      expect(answer).toMatchObject({ status: 403, body: { error: { code: 'outside_key', details: { index: 1 } } } });
    }
    const clone = await call(key, 'POST', `${V1}/admin/jobs/${acme}/clone`, { queue: 'elsewhere' });
    // A queue does not matter to keys that are not bound by queues.
    expect(clone.status).toBe(KEYS[key]?.queues ? 403 : 201);
    if (clone.status === 201) await call('root', 'POST', `${V1}/jobs/${clone.body.id}/cancel`);
    else expect(await all()).toBe(before);
  });
});

describe('a key with bounds', () => {
  it('has the queue and the group filled in if it names exactly one', async () => {
    const { status, body } = await call('all', 'POST', `${V1}/jobs`, { type: 'acme.send', args: [] });
    expect([status, body.queue, body.group]).toEqual([201, 'acme-mail', 'acme']);
    const several = await call('queues', 'POST', `${V1}/jobs`, { type: 'acme.send', args: [] });
    expect(several).toMatchObject({ status: 403, body: { error: { code: 'outside_key' } } });
  });

  it("neither finds nor replaces another's unique job", async () => {
    const job = (group: string, unique: Json) => ({
      type: 'acme.once',
      args: [7],
      options: { queue: 'acme-mail', group, unique },
    });
    for (const on_conflict of ['reject', 'ignore', 'replace']) {
      const theirs = await call(
        'root',
        'POST',
        `${V1}/jobs`,
        job(`zeta-${on_conflict}`, { keys: ['type', 'args'], on_conflict }),
      );
      const own = await call(
        'groups',
        'POST',
        `${V1}/jobs`,
        job('acme', { keys: ['type', 'args'], on_conflict: 'reject' }),
      );
      expect(own.status).toBe(201);
      const again = await call(
        'groups',
        'POST',
        `${V1}/jobs`,
        job('acme', { keys: ['type', 'args'], on_conflict: 'reject' }),
      );
      expect(again).toMatchObject({ status: 409, body: { error: { details: { existing_job_id: own.body.id } } } });
      for (const { body } of [theirs, own]) await call('root', 'POST', `${V1}/jobs/${body.id}/cancel`);
    }
  });

  it('shares no Idempotency-Key with others', async () => {
    const job = { type: 'acme.send', args: [], options: { queue: 'acme-mail', group: 'acme' } };
    const answers = await Promise.all(
      ['root', 'queues', 'types'].map((key) => call(key, 'POST', `${V1}/jobs`, job, { 'Idempotency-Key': 'same' })),
    );
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(3);
    const again = await call('types', 'POST', `${V1}/jobs`, job, { 'Idempotency-Key': 'same' });
    expect(again.body.id).toBe(answers[2]?.body.id);
  });

  it('makes tokens for what lies inside only, and they end there', async () => {
    const token = (body: Json) => call('queues', 'POST', `${V1}/tokens`, { ...body, expires_in: '15m' });
    expect((await token({ job: acme, read: true })).status).toBe(201);
    expect((await token({ job: zeta.id, read: true })).status).toBe(404);
    expect((await token({ enqueue: { type: 'acme.send', queue: 'zeta-mail' } })).status).toBe(403);
    expect((await token({ enqueue: { type: 'acme.send', queue: 'acme-mail' } })).status).toBe(201);
  });

  it('shows its bounds, and sees a queue as a whole if it is bound by queues alone', async () => {
    const { body } = await call('all', 'GET', `${V1}/admin/session`);
    expect(body).toMatchObject({ role: 'admin', bounds: KEYS.all });
    expect((await call('queues', 'GET', `${V1}/queues/acme-mail/stats`)).status).toBe(200);
    expect((await call('queues', 'GET', `${V1}/queues/acme-none`)).status).toBe(404);
    expect((await call('all', 'GET', `${V1}/queues/acme-mail/stats`)).body.error?.code).toBe('outside_key');
  });

  it('narrows types that lie within its own, and is refused those that cannot be', async () => {
    const statusOf = async (type: string) => (await call('types', 'GET', `${V1}/jobs/count?type=${type}`)).status;
    expect(await Promise.all(['*', 'acme.*', 'acme.s*d', 'zeta.*', '*.send'].map(statusOf))).toEqual([
      200, 200, 200, 200, 403,
    ]);
  });
});

describe('two parties with dead letters', () => {
  /** The queues in which each key sees a dead letter, of those that have one of each party or of acme. */
  const SEEN = {
    queues: ['acme-mail'],
    types: ['acme-mail', 'mixed'],
    groups: ['acme-mail', 'mixed'],
    all: ['acme-mail'],
  };
  const buried: Record<string, string> = {};
  beforeAll(async () => {
    for (const queue of ['acme-mail', 'mixed']) buried[queue] = await bury('acme', queue);
  });

  it.each(Object.entries(SEEN))('each list theirs, and count them: %s', async (key, queues) => {
    const ids = queues.map((queue) => buried[queue]).sort();
    for (const path of [`${V1}/dead-letter`, `${V1}/admin/dead-letter`, '/v1/dead-letter']) {
      const { status, body } = await call(key, 'GET', `${path}?per_page=100`);
      const items = (body.jobs ?? body.items) as Json[];
      expect([path, status, items.map(({ id }) => id).sort()]).toEqual([path, 200, ids]);
      expect(body.total ?? (body.pagination as Json).total).toBe(ids.length);
      for (const own of ['queue=acme-mail', 'type=acme.dead', 'group=acme']) {
        const { body: part } = await call(key, 'GET', `${path}?${own}`);
        expect((part.jobs ?? part.items) as Json[]).toHaveLength(own.startsWith('queue') ? 1 : ids.length);
      }
      const pages: unknown[] = [];
      for (let cursor: unknown = ''; cursor !== null; ) {
        const { body: page } = await call(key, 'GET', `${path}?limit=1${cursor ? `&cursor=${cursor}` : ''}`);
        pages.push(...((page.jobs ?? page.items) as Json[]).map(({ id }) => id));
        cursor = (page.pagination as Json).next_cursor ?? null;
      }
      expect(pages.sort()).toEqual(ids);
    }
  });

  it.each(Object.entries(SEEN))(
    'each see theirs among the failures, by no number or cursor more: %s',
    async (key, queues) => {
      const { body } = await call(key, 'GET', `${V1}/admin/failures`);
      expect(body).toMatchObject({ total: 1, more: false, cursor: null });
      expect(body.items).toMatchObject([{ type: 'acme.dead', count: queues.length, dead: queues.length }]);
      const [group = {}] = body.items ?? [];
      expect((group.queues as string[]).sort()).toEqual(queues);
      if (key !== 'queues') expect(body.searched).toBe(queues.length);
      const path = `${V1}/admin/failures/${group.fingerprint as string}`;
      expect((await call(key, 'GET', path)).body).toMatchObject({ count: queues.length });
      const { body: whole } = await call('root', 'GET', `${V1}/admin/failures?type=zeta.dead`);
      const theirs = whole.items?.[0]?.fingerprint as string;
      const [of, unknown] = await Promise.all(
        [theirs, '0'.repeat(theirs.length)].map(async (fingerprint) => {
          const answer = await call(key, 'GET', `${V1}/admin/failures/${fingerprint}`);
          const { request_id: _, ...error } = answer.body.error ?? { request_id: '' };
          return said([answer.status, error], fingerprint);
        }),
      );
      expect(of).toBe(unknown);
      // A cursor that a client writes itself names no queue outside.
      const places = [['zeta-mail', { state: 'dead' }]];
      const forged = btoa(JSON.stringify({ places, searched: 0 })).replace(/=+$/, '');
      const answer = await call(key, 'GET', `${V1}/admin/failures?cursor=${forged}`);
      expect(said(answer.body)).not.toContain('zeta');
    },
  );

  it('are shown whole queues only if they are bound by queues alone', async () => {
    for (const path of [`${V1}/queues`, `${V1}/admin/queues`, '/v1/queues']) {
      const { body } = await call('queues', 'GET', path);
      const items = body.items as Json[];
      const names = items.map((queue) => queue.name);
      expect(names).toContain('acme-mail');
      expect(names.every((name) => (name as string).startsWith('acme-'))).toBe(true);
      expect(body.total).toBe(names.length);
      for (const key of ['types', 'groups', 'all']) {
        expect((await call(key, 'GET', path)).body.error?.code).toBe('outside_key');
      }
    }
    expect((await call('queues', 'GET', `${V1}/admin/queues?name=zeta`)).body).toMatchObject({ items: [], total: 0 });
    for (const path of [`${V1}/dead-letter/stats`, `${V1}/admin/dead-letter/stats`]) {
      const { body } = await call('queues', 'GET', path);
      expect(body).toMatchObject({ total: 1, by_queue: { 'acme-mail': 1 }, by_type: { 'acme.dead': 1 } });
      expect(JSON.stringify(body)).not.toContain('zeta');
    }
  });
});

describe('a schedule', () => {
  it('is seen and switched by a key that is bound by its queue, and is unknown to others', async () => {
    for (const party of ['acme', 'zeta']) {
      const job_template = { type: `${party}.tick`, args: [], options: { queue: `${party}-ticks` } };
      const body = { name: `${party}-tick`, expression: '0 0 1 1 *', job_template };
      expect((await call('root', 'POST', `${V1}/cron`, body)).status).toBe(201);
    }
    for (const path of ['cron', 'crons']) {
      const { body: list } = await call('queues', 'GET', `${V1}/${path}`);
      expect([...(list.items ?? (list.crons as Json[]))].map(({ name }) => name)).toEqual(['acme-tick']);
      expect(list.pagination).toMatchObject({ total: 1 });
      for (const [method, verb] of [
        ['GET', ''],
        ['GET', '/history'],
        ['POST', '/pause'],
        ['POST', '/resume'],
        ['DELETE', ''],
      ]) {
        const answers = await Promise.all(
          ['zeta-tick', 'nothing'].map(async (name) => {
            const answer = await call('queues', method as string, `${V1}/${path}/${name}${verb}`);
            const { request_id: _, ...error } = answer.body.error ?? { request_id: '' };
            return said([answer.status, error], name);
          }),
        );
        expect([path, method, verb, answers[0]]).toEqual([path, method, verb, answers[1]]);
        expect(answers[0]).toContain('404');
      }
      expect((await call('queues', 'POST', `${V1}/${path}/acme-tick/pause`)).body.enabled).toBe(false);
      expect((await call('queues', 'GET', `${V1}/${path}/acme-tick/history`)).status).toBe(200);
      for (const key of ['types', 'groups', 'all']) {
        for (const at of ['', '/acme-tick']) {
          expect((await call(key, 'GET', `${V1}/${path}${at}`)).body.error?.code).toBe('outside_key');
        }
      }
      expect((await call('queues', 'POST', `${V1}/${path}/acme-tick/trigger`)).body.error?.code).toBe('outside_key');
    }
    expect((await call('root', 'GET', `${V1}/crons/zeta-tick`)).body.enabled).toBe(true);
    expect((await call('queues', 'DELETE', `${V1}/crons/acme-tick`)).status).toBe(204);
  });
});

describe('a workflow', () => {
  const steps = (...parties: string[]) => ({
    type: 'chain',
    steps: parties.map((party) => ({ type: `${party}.step`, args: [], options: { queue: `${party}-flow` } })),
  });
  const start = (key: string, body: Json) => call(key, 'POST', `${V1}/workflows`, body);

  it.each(['queues', 'types'])(
    'is seen, started and cancelled by a key if all its jobs lie inside: %s',
    async (key) => {
      const [theirs, mixed] = await Promise.all([start('root', steps('zeta')), start('root', steps('acme', 'zeta'))]);
      const { status, body: own } = await start(key, steps('acme', 'acme'));
      expect(status).toBe(201);
      for (const [method, path] of [
        ['GET', ''],
        ['GET', '/progress'],
        ['POST', '/cancel'],
        ['DELETE', ''],
      ] as const) {
        const answers = await Promise.all(
          [theirs.body.id, mixed.body.id, UNKNOWN_ID].map(async (id) => {
            const answer = await call(key, method, `${V1}/workflows/${id}${path}`);
            const { request_id: _, ...error } = answer.body.error ?? { request_id: '' };
            return said([answer.status, error], id as string);
          }),
        );
        expect(new Set(answers).size).toBe(1);
        expect(answers[0]).toContain('404');
        if (method === 'GET') expect((await call(key, method, `${V1}/workflows/${own.id}${path}`)).status).toBe(200);
      }
      expect((await call('root', 'GET', `${V1}/workflows/${theirs.body.id}`)).body.state).toBe('running');
      const refused = await start(key, steps('acme', 'zeta'));
      expect(refused).toMatchObject({ status: 403, body: { error: { code: 'outside_key', details: { index: 1 } } } });
      const taken = (id: unknown) => start(key, { ...steps('acme'), id });
      expect(await taken(theirs.body.id)).toMatchObject({ status: 403, body: { error: { code: 'outside_key' } } });
      expect(await taken(own.id)).toMatchObject({ status: 409, body: { error: { code: 'duplicate' } } });
      expect((await call(key, 'DELETE', `${V1}/workflows/${own.id}`)).body.state).toBe('cancelled');
      for (const { body } of [theirs, mixed]) await call('root', 'DELETE', `${V1}/workflows/${body.id}`);
    },
  );

  it('is refused to a key that is bound by groups', async () => {
    expect((await start('groups', steps('acme'))).body.error?.code).toBe('outside_key');
  });
});

describe('bounds', () => {
  it('contain narrower ones', () => {
    expect(within({ queues: ['a-b'] }, { queues: ['a-*'] })).toBe(true);
    expect(within({ queues: ['a-*'] }, { queues: ['a-b'] })).toBe(false);
    expect(within({}, { queues: ['a-*'] })).toBe(false);
    expect(within({ queues: ['a'], groups: ['g'] }, { queues: ['*'] })).toBe(true);
  });
});
