/** A queue whose object fills up: ended jobs go before their time, newcomers wait, and nothing under way is lost. */
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { type Env, readConfig } from '../../../../src/config';
import { clock, MINUTE, T0 } from '../../../support/clock';
import { isLong } from '../../../support/long';
import { type JobChange, refusal, steady, TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';
import { create, ticksOf } from '../cron/entries';

server.emptyBeforeEach();
clock.startAtT0();

const BOUND = 2_000_000;
const large = (change: JobChange = {}): JobChange => ({ ...change, body: { args: ['é'.repeat(10_000)] } });

async function bounded(name?: string, max_storage_bytes = BOUND): Promise<TestQueue> {
  const queue = new TestQueue(name);
  await server.configure(queue.name, { max_storage_bytes });
  return queue;
}

/** Enqueues jobs of some 20 kB until they are refused. @returns the ids of those that were taken */
async function fill(queue: TestQueue, change: JobChange = {}): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    const outcome = await queue.enqueue(large(change)).catch((error) => error as Error);
    if (outcome instanceof Error) return ids;
    ids.push(outcome[0]?.id as string);
    if (ids.length > 200) throw new Error('the queue takes whatever comes');
  }
}

/** Rings the alarm until it stands for later. */
async function settled(queue: TestQueue): Promise<void> {
  for (let at = await queue.armedAt(); at !== null && at <= Date.now() + 100; at = await queue.armedAt()) {
    await queue.alarm();
  }
}

const use = async (queue: TestQueue) => (await queue.stats()).storage;
const storageOverHttp = async ({ name }: TestQueue) =>
  (await server.ok(200, 'GET', `/ojs/v1/queues/${name}/stats`)).stats;

describe('the archive of a queue that fills up', () => {
  it.runIf(isLong)(
    'loses its oldest jobs before their time, in turns, and an event says how many and until when',
    async () => {
      const queue = await bounded();
      const done: string[] = [];
      for (let n = 0; n < 150; n++) {
        clock.set(T0 + n);
        const id = await queue.add(large());
        await queue.claim();
        await queue.ack(id);
        done.push(id);
        await settled(queue);
      }
      // The size is looked at before a transaction writes: the last one's is seen by the next.
      await queue.alarm();
      await settled(queue);
      const states = await Promise.all(done.map((id) => queue.state(id)));
      const gone = states.filter((state) => state === '404').length;
      expect(gone).toBeGreaterThan(50);
      expect(states).toEqual([...Array(gone).fill('404'), ...Array(150 - gone).fill('completed')]);
      const told = (await queue.api.events({ types: ['queue.storage_pruned'], limit: 1000 })).map(({ data }) => data);
      expect(told.reduce((sum, { jobs }) => sum + (jobs as number), 0)).toBe(gone);
      expect(told.at(-1)).toMatchObject({ until: T0 + gone - 1 });
      expect(await use(queue)).toMatchObject({ max_bytes: BOUND, state: 'ok' });
    },
  );

  it('goes first, then what says itself how long it is kept, then cancelled and discarded jobs', async () => {
    const queue = await bounded();
    const ids: Record<string, string> = {};
    const end = async (name: string, change: JobChange, act: (id: string) => Promise<unknown>) => {
      ids[name] = await queue.add(change);
      await act(ids[name]);
    };
    const complete = async (id: string) => {
      await queue.claim();
      await queue.ack(id);
    };
    await end('cancelled', {}, (id) => queue.cancel(id));
    await end('own', { body: { retention: { completed: 30 * MINUTE } } }, complete);
    await end('completed', {}, complete);
    await fill(queue, { scheduledAt: T0 + MINUTE });
    const left = async () => {
      const states = await Promise.all(Object.entries(ids).map(async ([name, id]) => [name, await queue.state(id)]));
      return states.flatMap(([name, state]) => (state === '404' ? [] : [name]));
    };
    expect(await left()).toEqual(['cancelled', 'own', 'completed']);
    const seen: unknown[] = [];
    for (let alarm = 0; alarm < 3; alarm++) {
      await queue.alarm();
      seen.push(await left());
    }
    expect(seen).toEqual([['cancelled', 'own'], ['cancelled'], []]);
    // Nothing is left that could go: the alarm does not go round for it.
    expect(await queue.armedAt()).toBeGreaterThanOrEqual(T0 + MINUTE);
  });
});

describe('jobs that are kept for ever', () => {
  it('stay in a queue that fills up, which says early that nothing may go, and refuses jobs then', async () => {
    const queue = await bounded();
    await server.configure(queue.name, { retention: { completed: 'forever', discarded: 'forever' } });
    const own = (end: string): JobChange => ({ body: { retention: { [end]: 'P36500D' } } });
    const ended: string[] = [];
    const end = async (change: JobChange, act: (id: string) => Promise<unknown>) => {
      const id = await queue.add(change);
      await act(id);
      ended.push(id);
    };
    const complete = async (id: string) => {
      await queue.claim();
      await queue.ack(id);
    };
    const fail = async (id: string) => {
      await queue.claim();
      await queue.nack(id);
    };
    await end({}, complete);
    await end(own('completed'), complete);
    await end(own('cancelled'), (id) => queue.cancel(id));
    await end({ retry: steady(1) }, fail);
    await end({ retry: { ...steady(1), preset: 'zzz', on_exhaustion: 'discard' } }, fail);
    await end({}, (id) => queue.cancel(id));
    const told = async () =>
      (await queue.api.events({ types: ['queue.storage_pruned'], limit: 1000 })).map(({ data }) => data);
    await fill(queue, { scheduledAt: T0 + 30 * MINUTE });
    await settled(queue);
    const states = async () => await Promise.all(ended.map((id) => queue.state(id)));
    const kept = ['completed', 'completed', 'cancelled', 'discarded', 'discarded'];
    // The last one is not kept for ever.
    expect(await states()).toEqual([...kept, '404']);
    expect(await use(queue)).toMatchObject({ state: 'full' });
    await queue.alarm();
    expect(await told()).toEqual([
      { jobs: 1, until: T0 },
      { jobs: 0, until: 0 },
    ]);
    clock.set(T0 + 25 * 60 * MINUTE);
    await settled(queue);
    await queue.alarm();
    expect(await states()).toEqual([...kept, '404']);
    expect((await told()).slice(2)).toEqual([{ jobs: 0, until: 0 }]);
    // The clock is set back: what it said is not a day old, but lies ahead.
    clock.set(T0 + 20 * 60 * MINUTE);
    await queue.api.configure({ concurrency: 5 });
    expect((await told()).slice(3)).toEqual([{ jobs: 0, until: 0 }]);
  });
});

describe('a queue that is full', () => {
  it('refuses jobs and continues with those it has, until there is room again; none is lost', async () => {
    const queue = await bounded();
    const ids = await fill(queue);
    expect(ids.length).toBeGreaterThan(50);
    expect(await storageOverHttp(queue)).toMatchObject({ storage: { max_bytes: BOUND, state: 'full' } });
    const body = { type: 'a.b', args: [], options: { queue: queue.name } };
    const refused = await server.call('POST', '/ojs/v1/jobs', body);
    expect(refused).toMatchObject({
      status: 503,
      body: { error: { code: 'storage_full', retryable: true, details: { queue: queue.name, max_bytes: BOUND } } },
    });
    expect(refused.headers.get('Retry-After')).toBe('5');
    const batch = { jobs: [body, { ...body, options: { queue: `${queue.name}-other` } }] };
    expect(await server.refusal('POST', '/ojs/v1/jobs/batch', batch)).toMatchObject({
      status: 503,
      code: 'storage_full',
    });
    await queue.cancel(ids.pop() as string);
    const done: string[] = [];
    for (let jobs = await queue.claim({ count: 20 }); jobs.length > 0; jobs = await queue.claim({ count: 20 })) {
      for (const { id } of jobs) await queue.ack(id, { result: '"done"' });
      done.push(...jobs.map(({ id }) => id));
      await settled(queue);
    }
    expect(done).toEqual(ids);
    expect(await use(queue)).toMatchObject({ state: 'ok' });
    await queue.add();
  });

  it('keeps its dead letters, and takes jobs again when they are deleted', async () => {
    const queue = await bounded();
    const ids = await fill(queue, { retry: { ...steady(1), on_exhaustion: 'dead_letter' } });
    for (const { id } of await queue.claim({ count: 100 })) await queue.nack(id);
    await settled(queue);
    expect((await queue.stats()).dead).toBe(ids.length);
    expect(refusal(await queue.api.enqueue([]).then(() => queue.api.checkJobs([])))).toMatchObject({
      code: 'storage_full',
    });
    for (const id of ids.slice(0, 30)) await queue.api.deleteDeadLetter(id);
    await queue.add();
  });

  it('fires its cron entries when there is room again', async () => {
    await create('c');
    const queue = await bounded('c');
    await fill(queue);
    await queue.jumpTo(T0 + MINUTE + 5);
    expect((await ticksOf('c')).filter((tick) => tick > 0)).toEqual([]);
    for (const { id } of await queue.claim({ count: 100 })) await queue.cancel(id);
    await settled(queue);
    await queue.jumpTo(T0 + MINUTE + 10_000);
    expect((await ticksOf('c')).filter((tick) => tick > 0)).toEqual([T0 + MINUTE]);
  });

  it('starts the steps of workflows when there is room again', async () => {
    const queue = await bounded('w');
    const step = (name: string) => ({ type: 'test.step', args: [], options: { queue: name } });
    const chain = { type: 'chain', steps: [step('first'), step('w')] };
    const { id } = await server.ok(201, 'POST', '/ojs/v1/workflows', chain);
    await fill(queue);
    await server.complete('first');
    expect(await queue.claim({ count: 100 })).not.toContainEqual(expect.objectContaining({ type: 'test.step' }));
    for (const { id: running } of await server.jobs('w')) await queue.cancel(running as string);
    await settled(queue);
    clock.set(T0 + MINUTE);
    await clock.ring(env.WORKFLOWS.getByName(id as string));
    await expect.poll(async () => (await queue.claim()).map(({ type }) => type)).toEqual(['test.step']);
  });

  it('lets dead letters of other queues wait where they are', async () => {
    const queue = await bounded('full');
    await fill(queue);
    const from = new TestQueue('from');
    const id = await from.add({ retry: { ...steady(1), on_exhaustion: 'dead_letter' } });
    await from.claim();
    await from.nack(id);
    const retry = () => server.call('POST', `/ojs/v1/dead-letter/${id}/retry`, { override: { queue: 'full' } });
    expect(await retry()).toMatchObject({ status: 503, body: { error: { code: 'storage_full' } } });
    expect((await from.stats()).dead).toBe(1);
    for (const { id: running } of await queue.claim({ count: 100 })) await queue.cancel(running);
    await settled(queue);
    expect((await retry()).status).toBe(200);
  });
});

describe('the bound', () => {
  it.each([0, 999_999, 9_500_000_001, '2', 1.5])('is not %j', async (max_storage_bytes) => {
    const answer = await server.refusal('PUT', '/ojs/v1/queues/b/config', { max_storage_bytes });
    expect(answer).toEqual({ status: 400, code: 'invalid_request', field: 'max_storage_bytes' });
  });

  it('comes from the queue, else from the deployment, else is just below what an object holds', async () => {
    const queue = new TestQueue();
    await queue.add();
    expect(await use(queue)).toMatchObject({ max_bytes: 9_500_000_000, state: 'ok' });
    await queue.inside(({ q }) => {
      // The variables are those of all queues.
      Object.assign(q.config, { variables: { ...q.config.variables, maxStorageBytes: 5_000_000 } });
    });
    expect(await use(queue)).toMatchObject({ max_bytes: 5_000_000 });
    await server.configure(queue.name, { max_storage_bytes: BOUND });
    expect(await use(queue)).toMatchObject({ max_bytes: BOUND });
    const { config } = await server.ok(200, 'GET', `/ojs/v1/queues/${queue.name}/config`);
    expect(config).toEqual({ max_storage_bytes: BOUND });
  });

  it('of a deployment is a whole number of bytes', () => {
    const read = (MAX_STORAGE_BYTES: string) => readConfig({ ...(env as unknown as Env), MAX_STORAGE_BYTES });
    expect(read('3000000').maxStorageBytes).toBe(3_000_000);
    expect(read('').maxStorageBytes).toBeUndefined();
    for (const wrong of ['many', '5', '1e30', '2000000.5'])
      expect(() => read(wrong), wrong).toThrow('MAX_STORAGE_BYTES');
  });
});
