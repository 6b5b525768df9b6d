/** A queue goes out as a file and comes in again: the same jobs under the same ids, and the same file once more. */
import { describe, expect, it } from 'vitest';
import { clock, DAY, HOUR, iso, T0 } from '../../support/clock';
import { exported, imported, jobsIn, linesIn } from '../../support/exports';
import { TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();
clock.startAtT0();

const DEAD = { max_attempts: 1, on_exhaustion: 'dead_letter' };
const ONCE = { max_attempts: 1, on_exhaustion: 'discard' };

/** A queue in which jobs are in every state. */
async function furnished(queue: string): Promise<Record<string, string>> {
  const ids: Record<string, string> = {};
  await server.configure(queue, {
    retention: { completed: 'P30D' },
    groups: { order: 'fair', weights: { acme: 3 } },
    rate_limit: { concurrency: 50 },
  });
  await server.ok(200, 'PUT', `${V1}/queues/${queue}/groups/acme`, { concurrency: 4, weight: 7 });
  await server.ok(200, 'POST', `${V1}/queues/${queue}/groups/closed/pause`);
  const add = async (name: string, change: Json = {}) => {
    ids[name] = await server.enqueue(queue, change);
    clock.advance(10);
  };
  const take = async (name: string) => {
    const taken = await server.takeIds(queue, { count: 1 });
    expect(taken).toEqual([ids[name]]);
  };
  await add('completed', { args: [12345678901234567890n.toString()] });
  await take('completed');
  await server.ok(200, 'PUT', `${V1}/jobs/${ids.completed}/checkpoint`, { state: { page: 7 } });
  await server.ack(ids.completed, { result: { rows: 3 } });
  await add('retried');
  await take('retried');
  await server.ok(200, 'PUT', `${V1}/jobs/${ids.retried}/checkpoint`, { state: { page: 2 } });
  await server.nack(ids.retried, { error: { message: 'no relay', code: 'E', retry_in: HOUR } });
  await add('dead', { options: { retry: DEAD } });
  await take('dead');
  await server.nack(ids.dead);
  await add('discarded', { options: { retry: ONCE } });
  await take('discarded');
  await server.nack(ids.discarded);
  await add('cancelled');
  await server.ok(200, 'DELETE', `${V1}/jobs/${ids.cancelled}`);
  await add('running');
  await take('running');
  await add('plain', { meta: { n: 1 } });
  await add('chosen', { id: '0190b6a5-0000-7000-8000-0000000000aa' });
  await add('delayed', { options: { delay_until: iso(T0 + DAY) } });
  await add('urgent', { options: { priority: 9, tags: ['a'] } });
  await add('pending', { options: { pending: true } });
  await add('unique', { options: { unique: { keys: ['type', 'queue'] } }, type: 'test.unique' });
  await add('unique everywhere', { options: { unique: { keys: ['type'] } }, type: 'test.everywhere' });
  await add('grouped', { options: { group: 'acme' } });
  await add('limited', { options: { rate_limit: { key: 'stripe', concurrency: 1 } } });
  await add('expiring', { options: { expires_at: iso(T0 + 2 * DAY) } });
  await add('kept', { options: { retention: { completed: 'P1D' }, timeout_ms: 500 }, x_of_mine: { a: [1] } });
  await server.addAll(
    [1, 2, 3].map((n) => ({ type: 'test.together', args: [n], options: { queue, delay_until: iso(T0 + HOUR) } })),
  );
  await server.ok(201, 'POST', `${V1}/cron`, {
    name: `nightly-${queue}`,
    expression: '0 3 * * *',
    timezone: 'Europe/Paris',
    job_template: { type: 'report.nightly', args: [], options: { queue } },
  });
  return ids;
}

/** What must be the same of a job, whatever moment it is looked at. */
async function shown(id: string): Promise<Json> {
  const job = await server.job(id);
  for (const name of ['waiting_for', 'worker_id', 'last_heartbeat_at', 'lease_expires_at']) delete job[name];
  return job;
}

describe('a queue that was exported', () => {
  it('is exported as the same file again, once it was imported', async () => {
    await furnished('mail');
    const file = await exported('mail', 'ended=true');
    await server.reset();
    expect(await imported('mail', file)).toMatchObject({
      ...{ queue: 'mail', complete: true, parts: 1, imported: 20, known: 0, id_rows: 1, schedules: 1 },
      not_kept: {},
    });
    expect(await exported('mail', 'ended=true')).toBe(file);
    await new TestQueue('mail').evict();
    expect(await exported('mail', 'ended=true')).toBe(file);
  });

  it('has its jobs under their ids, as they were', async () => {
    const ids = await furnished('mail');
    const before = new Map<string, Json>();
    for (const [name, id] of Object.entries(ids)) before.set(name, await shown(id));
    const counts = await server.counts('mail');
    const file = await exported('mail', 'ended=true');
    await server.reset();
    await imported('mail', file);
    for (const [name, id] of Object.entries(ids)) {
      const same = { ...before.get(name) };
      if (name === 'running') {
        // It is available, its attempt unused.
        Object.assign(same, { state: 'available', attempt: 0 });
        delete same.started_at;
      }
      expect(await shown(id), name).toEqual(same);
    }
    expect(await server.counts('mail')).toMatchObject({
      ...{ completed: 1, cancelled: 1, discarded: 2, retryable: 1, pending: 1, active: 0 },
      ...{ scheduled: counts.scheduled, available: (counts.available as number) + 1 },
    });
    expect(await server.ok(200, 'GET', `${V1}/jobs/${ids.completed}/result`)).toMatchObject({ result: { rows: 3 } });
    expect(await server.ok(200, 'GET', `${V1}/jobs/${ids.retried}/checkpoint`)).toMatchObject({ state: { page: 2 } });
    expect(await server.ok(200, 'GET', `${V1}/queues/mail/config`)).toMatchObject({
      config: { retention: { completed: 'P30D' }, groups: { order: 'fair', weights: { acme: 3 } } },
    });
    expect(await server.ok(200, 'GET', `${V1}/queues/mail/groups/acme`)).toMatchObject({
      override: { concurrency: 4, weight: 7 },
    });
    expect(await server.ok(200, 'GET', `${V1}/queues/mail/groups/closed`)).toMatchObject({
      override: { paused: true },
    });
    expect(await server.ok(200, 'GET', `${V1}/cron/nightly-mail`)).toMatchObject({ timezone: 'Europe/Paris' });
  });

  it('runs its jobs in their order, and their ids and fingerprints are taken', async () => {
    const ids = await furnished('mail');
    const file = await exported('mail');
    await server.reset();
    await imported('mail', file);
    expect(await server.takeIds('mail', { count: 50 })).toEqual(
      [
        'urgent',
        'running',
        'plain',
        'chosen',
        'unique',
        'unique everywhere',
        'grouped',
        'limited',
        'expiring',
        'kept',
      ].map((name) => ids[name]),
    );
    const unique = { type: 'test.everywhere', options: { unique: { keys: ['type'] }, queue: 'other' }, args: [] };
    expect(await server.refusal('POST', `${V1}/jobs`, unique)).toEqual({ status: 409, code: 'duplicate' });
    const own = { type: 'test.unique', options: { unique: { keys: ['type', 'queue'] }, queue: 'mail' }, args: [] };
    expect(await server.refusal('POST', `${V1}/jobs`, own)).toEqual({ status: 409, code: 'duplicate' });
    const chosen = { type: 'test.echo', args: [], id: ids.chosen, options: { queue: 'other' } };
    expect(await server.refusal('POST', `${V1}/jobs`, chosen)).toEqual({ status: 409, code: 'duplicate' });
    const fresh = await server.enqueue('mail');
    expect(Object.values(ids)).not.toContain(fresh);
  });

  it('leaves out the jobs that have ended, unless they are asked for; dead letters are always there', async () => {
    const ids = await furnished('mail');
    const states = (text: string) => jobsIn(text).map(({ id, state }) => [id, state]);
    const brief = states(await exported('mail'));
    expect(brief).toContainEqual([ids.dead, 'dead']);
    expect(brief.filter(([, state]) => !['waiting', 'pending', 'dead'].includes(state as string))).toEqual([]);
    const all = states(await exported('mail', 'ended=true'));
    expect(all).toContainEqual([ids.completed, 'completed']);
    expect(all).toContainEqual([ids.cancelled, 'cancelled']);
    expect(all).toContainEqual([ids.discarded, 'discarded']);
    expect(all).toHaveLength(brief.length + 3);
  });

  it('keeps its ids in a queue of another name, where they cost a row each', async () => {
    const ids = await furnished('mail');
    const file = await exported('mail', 'ended=true');
    await server.reset();
    expect(await imported('post', file)).toMatchObject({ imported: 20, id_rows: 20, not_kept: {} });
    for (const id of Object.values(ids)) expect(await server.job(id)).toMatchObject({ id, queue: 'post' });
    expect(jobsIn(await exported('post', 'ended=true')).map(({ id }) => id)).toEqual(jobsIn(file).map(({ id }) => id));
    const own = { type: 'test.unique', options: { unique: { keys: ['type', 'queue'] }, queue: 'post' }, args: [] };
    expect(await server.refusal('POST', `${V1}/jobs`, own)).toEqual({ status: 409, code: 'duplicate' });
    expect(await server.ok(200, 'GET', `${V1}/cron/nightly-mail`)).toMatchObject({ queue: 'post' });
  });

  it('comes in paused if it was paused', async () => {
    await server.enqueue('mail');
    await server.ok(200, 'POST', `${V1}/queues/mail/pause`);
    const file = await exported('mail');
    await server.reset();
    await imported('mail', file);
    expect(await server.take('mail')).toEqual([]);
    expect(await exported('mail')).toBe(file);
  });

  it('is in parts of some hundred lines, whatever pages its object was read by', async () => {
    const jobs = Array.from({ length: 1200 }, (_, n) => ({ type: 'test.echo', args: [n], options: { queue: 'mail' } }));
    for (let at = 0; at < jobs.length; at += 400) await server.addAll(jobs.slice(at, at + 400));
    const file = await exported('mail');
    expect(linesIn(file).flatMap(({ part, lines }) => (part ? [[part, lines]] : []))).toEqual([
      [1, 500],
      [2, 500],
      [3, 201],
    ]);
    expect(linesIn(file).at(-1)).toMatchObject({ end: true, parts: 3, lines: 1201, jobs: { waiting: 1200 } });
    await server.reset();
    expect(await imported('mail', file)).toMatchObject({ parts: 3, imported: 1200, id_rows: 0 });
    expect(await exported('mail')).toBe(file);
  });
});
