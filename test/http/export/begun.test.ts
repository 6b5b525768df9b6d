/** What has begun, failed together, waits for others or was made of several calls: the same after an export and an import. */
import { describe, expect, it } from 'vitest';
import { clock, DAY, HOUR, iso, T0 } from '../../support/clock';
import { exported, imported, jobsIn } from '../../support/exports';
import { TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();
clock.startAtT0();

const AGAIN = { max_attempts: 3, backoff_strategy: 'constant', initial_interval: HOUR, jitter: false };
const GATHERED = { keys: ['type', 'queue'], on_conflict: 'accumulate' };

const many = (count: number, change: Json): { type: string; args: unknown[]; options: Json }[] =>
  Array.from({ length: count }, (_, n) => ({ type: 'test.echo', args: [n], options: { queue: 'mail', ...change } }));

async function takeOne(id: string): Promise<void> {
  expect(await server.takeIds('mail', { count: 1 })).toEqual([id]);
}

/** The job continues later, its attempt unused. */
const snooze = (id: unknown, how: Json) => server.nack(id, { requeue: true, attempt_used: false, snooze: how });

/** A queue whose groups are strict, and whose jobs are amid what they do. */
async function furnished(): Promise<Record<string, string>> {
  await server.configure('mail', { groups: { order: 'strict', max_waiting: 200 } });
  const ids: Record<string, string> = {};
  const add = async (name: string, change: Json = {}) => {
    ids[name] = await server.enqueue('mail', change);
    clock.advance(10);
    return ids[name];
  };
  await takeOne(await add('failed head', { options: { group: 'retrying', retry: AGAIN } }));
  await server.nack(ids['failed head']);
  await add('behind the failed head', { options: { group: 'retrying' } });
  await takeOne(await add('sleeping head', { options: { group: 'sleeping' } }));
  const steps = { fetched: { result: { rows: 3 } }, nap: { until: T0 + DAY } };
  await snooze(ids['sleeping head'], { until: T0 + DAY, steps });
  await add('behind the sleeping head', { options: { group: 'sleeping' } });
  await takeOne(await add('waits for a signal'));
  await snooze(ids['waits for a signal'], { signal: 'approved', until: T0 + 2 * DAY });
  await takeOne(await add('has its signal'));
  await server.ok(200, 'POST', `${V1}/jobs/${ids['has its signal']}/signals/paid`, { payload: { by: 'ada' } });
  await snooze(ids['has its signal'], { in: HOUR });
  await takeOne(await add('running head', { options: { group: 'running' } }));
  await add('behind the running head', { options: { group: 'running' } });
  const together = await server.addAll(many(20, { retry: AGAIN }));
  expect(await server.takeIds('mail', { count: 20 })).toEqual(together);
  const error = { type: 'test.failed', message: 'all of it' };
  const reports = together.map((job_id) => ({ action: 'nack', job_id, error }));
  await server.ok(200, 'POST', `${V1}/workers/report`, { reports });
  for (const n of [1, 2, 3]) {
    const options = { queue: 'mail', unique: GATHERED, delay_until: iso(T0 + HOUR) };
    await server.ok(n === 1 ? 201 : 200, 'POST', `${V1}/jobs`, { type: 'test.gathered', args: [`call ${n}`], options });
  }
  await server.addAll(many(80, { group: 'noisy' }));
  await server.addAll(many(3, { rate_limit: { key: 'stripe', concurrency: 1 } }));
  await server.ok(200, 'POST', `${V1}/queues/mail/groups/closed/pause`);
  await server.addAll(many(2, { group: 'closed' }));
  return ids;
}

describe('jobs that have begun, and such that wait for others', () => {
  it('are exported as the same file again', async () => {
    await furnished();
    const file = await exported('mail', 'ended=true');
    expect(jobsIn(file)).toHaveLength(8 + 20 + 1 + 80 + 3 + 2);
    await server.reset();
    expect(await imported('mail', file)).toMatchObject({ complete: true, imported: 114, not_kept: {}, id_rows: 0 });
    expect(await exported('mail', 'ended=true')).toBe(file);
    await new TestQueue('mail').evict();
    expect(await exported('mail', 'ended=true')).toBe(file);
  });

  it('continue as they would have', async () => {
    const ids = await furnished();
    const file = await exported('mail');
    await server.reset();
    await imported('mail', file);
    const taken = await server.takeIds('mail', { count: 100 });
    const noisy = jobsIn(file).filter(({ body }) => (body as { group?: string }).group === 'noisy');
    const limited = jobsIn(file).filter(({ body }) => 'rate_limit' in (body as Json));
    // One of each group and key, and none whose head has begun.
    expect(taken.sort()).toEqual([ids['running head'], noisy[0]?.id, limited[0]?.id].sort());
    expect(await server.job(ids['behind the failed head'])).toMatchObject({
      waiting_for: { reason: 'group', job_id: ids['failed head'] },
    });
    expect(await server.job(ids['sleeping head'])).toMatchObject({ state: 'scheduled' });
    await server.ok(200, 'POST', `${V1}/jobs/${ids['waits for a signal']}/signals/approved`, { payload: 1 });
    const [woken] = await server.take('mail', { count: 1 });
    expect(woken).toMatchObject({
      id: ids['waits for a signal'],
      steps: { approved: { signal: { payload: 1 } } },
    });
    await clock.set(T0 + HOUR + 1000);
    const later = await server.take('mail', { count: 100 });
    const found = (id: unknown) => later.find((job) => job.id === id);
    expect(found(ids['failed head'])).toMatchObject({ attempt: 2 });
    expect(found(ids['has its signal'])).toMatchObject({ steps: { paid: { signal: { payload: { by: 'ada' } } } } });
    expect(later.filter(({ attempt }) => attempt === 2)).toHaveLength(21);
    const gathered = later.find(({ type }) => type === 'test.gathered');
    expect(gathered?.args).toEqual(['call 1', 'call 2', 'call 3']);
    await clock.set(T0 + DAY + 1000);
    const [slept] = (await server.take('mail', { count: 100 })).filter(({ id }) => id === ids['sleeping head']);
    expect(slept).toMatchObject({ steps: { fetched: { result: { rows: 3 } } } });
  });
});
