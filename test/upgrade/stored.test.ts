/** A deployment that an earlier release stored is opened by this one and goes on. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import { DIRECTORY, LOCKS, QUEUE, Schema, WORKFLOW } from '../../src/durable/schema';
import { read } from '../../src/metrics/meter';
import { clock, DAY, MINUTE, until } from '../support/clock';
import { TestQueue } from '../support/queue';
import { type Json, server, V1 } from '../support/server';
import { contents, load, object, QUEUE_8, schemaOf } from './stored';

describe('what 0.1.0 stored', () => {
  const recorded = QUEUE_8;
  const { at: T0, ids } = recorded;

  beforeEach(async () => {
    clock.set(T0);
    await load(recorded);
  });
  clock.restoreAfterEach();

  const id = (name: string) => ids[name] as string;

  const fetchAll = (queue: string) => server.take(queue, { worker_id: 'w2', count: 100 });
  const typesIn = async (queue: string) => (await server.jobs(queue)).map(({ type }) => type);

  /** Rings the alarms of all queues until something is so. */
  const eventually = (check: () => Promise<boolean>, what: string) =>
    until(async () => {
      clock.advance(11_000);
      for (const queue of ['old', 'peer', 'target']) await new TestQueue(queue).alarm();
      return check();
    }, what);

  describe('a stored queue', () => {
    it('has every job in its state', async () => {
      const states: Record<string, string> = {
        completed: 'completed',
        large: 'completed',
        discarded: 'discarded',
        dead: 'discarded',
        cancelled: 'cancelled',
        retryable: 'retryable',
        active: 'active',
        limited: 'active',
        waiting: 'available',
        available: 'available',
        urgent: 'available',
        scheduled: 'scheduled',
        expiring: 'scheduled',
        pending: 'pending',
        unique: 'available',
        global: 'available',
        chosen: 'available',
        remembered: 'available',
      };
      for (const name of Object.keys(ids)) {
        if (name.startsWith('together.'))
          expect(await server.job(id(name)), name).toMatchObject({ state: 'available' });
        if (name.startsWith('later.')) expect(await server.job(id(name)), name).toMatchObject({ state: 'scheduled' });
      }
      for (const [name, state] of Object.entries(states)) {
        expect(await server.job(id(name)), name).toMatchObject({ type: name, state, queue: 'old' });
      }
      expect(await server.job(id('completed'))).toMatchObject({ result: { sum: 42 } });
      expect((await server.job(id('large'))).result).toHaveLength(70_000);
      expect(await server.job(id('active'))).toMatchObject({ worker_id: 'w1', progress: 0.5 });
      expect(await server.ok(200, 'GET', `${V1}/jobs/${id('active')}/checkpoint`)).toMatchObject({
        state: { page: 7 },
      });
      expect(await server.job(id('retryable'))).toMatchObject({ attempt: 1, errors: [{ message: 'as ordered' }] });
    });

    it('counts what happens from now on, and nothing of what it finds that was not counted', async () => {
      const wasCounted = recorded.objects.some(({ name, rows }) => name === 'old' && 'meters' in rows);
      const queue = new TestQueue('old');
      const enqueued = async (type: string) => {
        const { totals } = await queue.api.activity();
        return totals.filter(([name, meter]) => name === type && read(meter, 'enqueued') > 0).length;
      };
      await queue.evict();
      await queue.add({ type: 'new.job' });
      expect(await enqueued('new.job')).toBe(1);
      await queue.claim({ types: ['new.job'] });
      await queue.evict();
      expect(await enqueued('new.job')).toBe(1);
      for (const found of ['available', 'waiting', 'completed', 'scheduled']) {
        expect(await enqueued(found)).toBe(wasCounted ? 1 : 0);
      }
    });

    it('gives every job that waits to a worker, in order, and takes its end', async () => {
      const jobs = await fetchAll('old');
      expect(jobs[0]).toMatchObject({ id: id('urgent') });
      expect(jobs.map((one) => one.id)).toEqual(
        expect.arrayContaining(['available', 'unique', 'global', 'chosen', 'remembered'].map(id)),
      );
      expect(jobs.map((one) => one.id)).not.toContain(id('waiting'));
      for (const one of jobs) await server.ack(one.id);
      for (const name of ['active', 'limited']) await server.ack(id(name));
      expect((await fetchAll('old')).map((one) => one.id)).toContain(id('waiting'));
      clock.set(T0 + 21 * MINUTE);
      const later = (await fetchAll('old')).map((one) => one.id);
      const delayed = Object.keys(ids).filter((name) => name.startsWith('later.'));
      expect(later).toEqual(expect.arrayContaining([...delayed.map(id), id('retryable'), id('scheduled')]));
      clock.set(T0 + 31 * MINUTE);
      expect(await server.job(id('expiring'))).toMatchObject({ state: 'discarded' });
      for (const one of [...jobs, { id: id('active') }]) {
        expect(await server.job(one.id as string)).toMatchObject({ state: 'completed' });
      }
      expect(await server.ok(200, 'POST', `${V1}/dead-letter/${id('dead')}/retry`)).toMatchObject({
        job: { state: 'available' },
      });
    });

    it('takes back the jobs of a worker that is gone', async () => {
      clock.set(T0 + 31 * MINUTE);
      expect(await server.job(id('active'))).toMatchObject({ state: expect.stringMatching('retryable|available') });
    });

    it('knows what is taken: unique keys, chosen ids, answers, and numbers of jobs', async () => {
      const add = (type: string, options: Json, rest: Json = {}, headers = {}) =>
        server.call(
          'POST',
          `${V1}/jobs`,
          { type, args: [type], ...rest, options: { queue: 'old', ...options } },
          headers,
        );
      for (const [name, keys] of [
        ['unique', ['type', 'queue']],
        ['global', ['type']],
      ] as const) {
        const refused = await add(name, { unique: { keys } });
        expect(refused, name).toMatchObject({
          status: 409,
          body: { error: { details: { existing_job_id: id(name) } } },
        });
      }
      expect(await add('chosen', {}, { id: id('chosen') })).toMatchObject({ status: 409 });
      const same = { type: 'remembered', args: [], options: { queue: 'old' } };
      const again = await server.call('POST', `${V1}/jobs`, same, { 'Idempotency-Key': 'answered' });
      expect(again.body).toMatchObject({ job: { id: id('remembered') } });
      const fresh = ((await add('fresh', {})).body.job as Json).id as string;
      expect(Object.values(ids)).not.toContain(fresh);
      expect(await server.job(fresh)).toMatchObject({ type: 'fresh', state: 'available' });
    });

    it('lets its limits hold', async () => {
      expect(await server.ok(200, 'GET', `${V1}/rate-limits/stripe`)).toMatchObject({ concurrency: 1 });
    });

    it('fires its cron entries, and hands over the one that was on its way', async () => {
      await eventually(
        async () =>
          (await server.ok(200, 'GET', `${V1}/cron/handed`)).cron !== undefined && (await schedules('target')) === 1,
        'the entry to arrive',
      );
      clock.set(T0 + 60 * MINUTE + 1);
      for (const queue of ['old', 'target']) await new TestQueue(queue).alarm();
      expect(await typesIn('old')).toContain('tick');
      expect(await typesIn('target')).toContain('handed');
      expect(await typesIn('old')).not.toContain('handed');
    });

    it('decides its shares of batches as their coordinators did', async () => {
      const both = async () => [...(await typesIn('old')), ...(await typesIn('peer'))];
      await eventually(async () => {
        const types = await both();
        return ['taken', 'given'].every((type) => types.filter((other) => other === type).length === 2);
      }, 'the batches to be decided');
      expect(await both()).not.toContain('undecided');
      const [here, there] = [await fetchAll('old'), await fetchAll('peer')];
      for (const jobs of [here, there]) {
        expect(jobs.map(({ type }) => type)).toEqual(expect.arrayContaining(['taken', 'given']));
      }
    });

    it('tells the workflow of the end of its job, and the workflow continues to its end', async () => {
      const second = () => fetchAll('old').then((jobs) => jobs.find(({ args }) => (args as string[])[0] === 'second'));
      let found: Json | undefined;
      await eventually(async () => {
        found ??= await second();
        return found !== undefined;
      }, 'the second job');
      await server.ack(found?.id);
      await eventually(
        async () =>
          ((await server.ok(200, 'GET', `${V1}/workflows/${id('workflow')}`)).workflow as Json).state === 'completed',
        'the workflow to be completed',
      );
      expect(await server.ok(200, 'GET', `${V1}/workflows?state=completed`)).toMatchObject({ total: 1 });
    });

    it('carries a dead outbox message to the queue that it was on its way to, once', async () => {
      await eventually(async () => (await server.job(id('moving'))).queue === 'target', 'the dead letter to arrive');
      expect(await server.job(id('moving'))).toMatchObject({ state: 'available', errors: [{ message: 'as ordered' }] });
      expect((await fetchAll('target')).map((one) => one.id)).toEqual([id('moving')]);
      expect(await typesIn('old')).not.toContain('moving');
    });

    it('does the operation on many jobs that was noted, and gives it again to its key', async () => {
      const path = `${V1}/jobs/bulk/${id('task')}`;
      await eventually(async () => (await server.ok(200, 'GET', path)).completed === true, 'the operation to be done');
      const { jobs } = await server.ok(200, 'GET', `${V1}/jobs?queue=old&type=doomed`);
      expect((jobs as Json[]).map(({ state }) => state)).toEqual(['cancelled', 'cancelled', 'cancelled']);
      const body = { filter: { queue: 'old', type: 'doomed' } };
      const again = await server.call('POST', `${V1}/jobs/bulk/cancel`, body, { 'Idempotency-Key': 'bulk' });
      expect(again.body).toMatchObject({ operation_id: id('task') });
    });

    it('prunes what is old enough', async () => {
      clock.set(T0 + 4 * DAY);
      await eventually(
        async () => (await server.call('GET', `${V1}/jobs/${id('completed')}`)).status === 404,
        'the pruning',
      );
      expect(await server.job(id('large'))).toMatchObject({ state: 'completed' });
    });
  });

  describe('a stored directory', () => {
    it('knows queues, workers, workflows and cron entries', async () => {
      expect(await server.queues()).toEqual(['old', 'peer', 'target']);
      const { workers } = await server.ok(200, 'GET', `${V1}/admin/workers`);
      expect((workers ?? []) as Json[]).toMatchObject([{ id: 'w1' }]);
      expect(await server.ok(200, 'GET', `${V1}/workflows`)).toMatchObject({ total: 1 });
      expect(((await server.ok(200, 'GET', `${V1}/cron`)).crons as Json[]).map(({ name }) => name)).toContain('tick');
    });

    it('tells the queues of the settings that they have not received', async () => {
      // It is woken like any object whose alarm was lost.
      await server.ok(200, 'GET', `${V1}/queues`);
      await until(async () => {
        await clock.ring(object('DIRECTORY', 'directory'));
        const effective = (await server.ok(200, 'GET', `${V1}/queues/old/config`)).effective as Json;
        return JSON.stringify(effective).includes('P2D') || JSON.stringify(effective).includes('172800');
      }, 'the settings to arrive');
      expect(await server.ok(200, 'GET', `${V1}/rate-limits/other`)).toMatchObject({ override: { concurrency: 3 } });
    });
  });

  const KINDS = { QUEUES: QUEUE, DIRECTORY, WORKFLOWS: WORKFLOW, UNIQUE_LOCKS: LOCKS };

  it('every stored database comes to the schema that a new one has', async () => {
    for (const { namespace, name } of recorded.objects) {
      const made = await runInDurableObject(object(namespace, `new-${name}`), (_, { storage }) => {
        new Schema(storage, KINDS[namespace]).create();
        return schemaOf(storage.sql);
      });
      await runInDurableObject(object(namespace, name), (_, { storage }) =>
        new Schema(storage, KINDS[namespace]).exist(),
      );
      expect((await contents(namespace, name)).schema, `${namespace} ${name}`).toEqual(made);
    }
  });
});

/** How many cron entries a queue has. */
async function schedules(queue: string): Promise<number> {
  const stub = env.QUEUES.getByName(queue) as unknown as { cronSummaries(): Promise<unknown[]> };
  return (await stub.cronSummaries()).length;
}
