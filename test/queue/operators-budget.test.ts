/** What operators and careful producers pay: rows written by each of their operations, alarms left out. */

import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import { TestQueue } from '../support/queue';
import { rowsWritten } from '../support/rows';
import { type Json, server, V1 } from '../support/server';

let queue: string;

beforeEach(async () => {
  queue = `rows-${crypto.randomUUID().slice(0, 8)}`;
  // The queue is there, its alarm stands, and its first chunk and lease row are written.
  await add(1, { delay_until: '+PT1H' });
  await add(1);
  await endAll('ack');
});

const job = (options: Json = {}, into = queue): Json => ({
  type: 'rows.job',
  args: [],
  options: { queue: into, ...options },
});

async function add(count: number, options: Json = {}): Promise<string[]> {
  const { jobs } = await server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs: Array(count).fill(job(options)) });
  return (jobs as Json[]).map(({ id }) => id as string);
}

async function endAll(how: 'ack' | 'nack'): Promise<void> {
  const jobs = await server.take(queue, { count: 100 });
  for (const { id } of jobs as Json[]) {
    const error = { code: 'DEAD_LETTER', message: 'no use' };
    await server.ok(200, 'POST', `${V1}/workers/${how}`, { job_id: id, ...(how === 'nack' && { error }) });
  }
}

/** Rows written in a queue, without its alarms. */
const written = (act: () => Promise<unknown>, name = queue) => new TestQueue(name).rowsWritten(act);

/** Rows written in the directory. */
const inDirectory = (act: () => Promise<unknown>) => rowsWritten(env.DIRECTORY.getByName('directory'), act);

describe('changing a job that waits', () => {
  it('writes its row', async () => {
    const [id] = await add(1);
    expect(await written(() => server.ok(200, 'PATCH', `${V1}/jobs/${id}`, { retry: { max_attempts: 9 } }))).toBe(1);
  });

  it('writes its entry in the due index too, when its place changes', async () => {
    const [id] = await add(1, { delay_until: '+PT1H' });
    expect(await written(() => server.ok(200, 'PATCH', `${V1}/jobs/${id}`, { delay_until: '+PT2H' }))).toBe(2);
  });
});

describe('operations on many', () => {
  it.each([['ids'], ['a filter']])('cancel for two rows each, by %s', async (by) => {
    const ids = await add(100);
    const what = by === 'ids' ? { job_ids: ids } : { filter: { queue, state: 'available' } };
    const rows = await written(() => server.ok(200, 'POST', `${V1}/jobs/bulk/cancel`, what));
    // Two more: the block that they were in goes, and their sequence numbers are put on record. And one holds what was
    // counted: of the whole operation.
    expect(rows).toBeLessThanOrEqual(2 * 100 + 3 + (by === 'ids' ? 0 : 4));
  });

  it('give a hundred dead letters a second life for two rows each', async () => {
    const ids = await add(100);
    await endAll('nack');
    expect(await written(() => server.ok(200, 'POST', `${V1}/jobs/bulk/retry`, { job_ids: ids }))).toBeLessThanOrEqual(
      200 + 1,
    );
  });

  it('cost two more under an idempotency key, by ids, one in the audit log, and a repeated request none', async () => {
    const ids = await add(100);
    // The first key of all makes the table.
    await post(`${V1}/jobs/bulk/cancel`, { job_ids: await add(1) }, { 'Idempotency-Key': `${queue} first` });
    const send = () => post(`${V1}/jobs/bulk/cancel`, { job_ids: ids }, { 'Idempotency-Key': queue });
    expect(await inDirectory(async () => expect(await written(send)).toBe(2 * 100 + 4 + 1))).toBe(2 + 1);
    expect(await inDirectory(async () => expect(await written(send)).toBe(0))).toBe(0);
    const again = { job_ids: await add(1), atomicity: 'atomic' };
    const atomically = () => post(`${V1}/jobs/bulk/cancel`, again, { 'Idempotency-Key': `${queue} atomic` });
    expect(await inDirectory(atomically)).toBe(3 + 1);
    expect(await inDirectory(atomically)).toBe(0);
  });

  it.each([
    ['immediate', {}],
    ['delayed', { delay_until: '+PT1H' }],
  ])('cost five rows each where it is all or none over two queues, and a few in each: %s jobs', async (_, options) => {
    const other = `${queue}-other`;
    await server.ok(201, 'POST', `${V1}/jobs`, job({ delay_until: '+PT1H' }, other));
    const jobs = [...Array(50).fill(job(options)), ...Array(50).fill(job(options, other))];
    const { jobs: added } = await server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs });
    const job_ids = (added as Json[]).map(({ id }) => id);
    const cancel = () => server.ok(200, 'POST', `${V1}/jobs/bulk/cancel`, { job_ids, atomicity: 'atomic' });
    const rows = await written(async () => {
      expect(await written(cancel, other)).toBeLessThanOrEqual(5 * 50 + 2 + 1);
    });
    expect(rows).toBeLessThanOrEqual(5 * 50 + 4 + 1);
  });

  it('delete for two rows each', async () => {
    const ids = await add(100);
    await server.ok(200, 'POST', `${V1}/jobs/bulk/cancel`, { job_ids: ids });
    // One more keeps the highest sequence number on record.
    expect(await written(() => server.ok(200, 'POST', `${V1}/jobs/bulk/delete`, { job_ids: ids }))).toBeLessThanOrEqual(
      201,
    );
  });
});

describe('an idempotency key', () => {
  it('costs two rows, and a repeated request none', async () => {
    const headers = { 'Idempotency-Key': 'once' };
    const send = () => post(`${V1}/jobs`, job(), headers);
    expect(await written(send)).toBe(1 + 2);
    expect(await written(send)).toBe(0);
  });
});

describe('a batch over two queues', () => {
  it('costs three rows for each job, because it is held until all have agreed, and a few in each queue', async () => {
    const other = `${queue}-other`;
    await server.ok(201, 'POST', `${V1}/jobs`, job({ delay_until: '+PT1H' }, other));
    const jobs = [...Array(50).fill(job()), ...Array(50).fill(job({}, other))];
    const rows = await written(async () => {
      const there = await written(() => server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs }), other);
      expect(there).toBeLessThanOrEqual(3 * 50 + 4);
    });
    expect(rows).toBeLessThanOrEqual(3 * 50 + 4);
  });
});

describe('pausing and resuming', () => {
  it('write one row each, and none when nothing changes', async () => {
    const call = (action: string) => () => server.ok(200, 'POST', `${V1}/queues/${queue}/${action}`);
    expect(await written(call('pause'))).toBe(1);
    expect(await written(call('pause'))).toBe(0);
    expect(await written(call('resume'))).toBe(1);
  });
});

describe('reading', () => {
  it('writes nothing, however much is asked', async () => {
    await add(10, { tags: ['a'] });
    const rows = await written(async () => {
      await server.ok(200, 'GET', `${V1}/jobs?queue=${queue}&tag=a&args.0.x=1`);
      await server.ok(200, 'GET', `${V1}/jobs/count?queue=${queue}&state=available`);
      await server.ok(200, 'GET', `${V1}/admin/jobs?queue=${queue}&sort=priority`);
      await server.ok(200, 'GET', `${V1}/queues/${queue}/stats`);
      await server.ok(200, 'GET', `${V1}/queues/${queue}/priority-stats`);
      await server.ok(200, 'GET', `${V1}/dead-letter?queue=${queue}`);
      await server.ok(200, 'GET', `${V1}/dead-letter/stats`);
      await server.ok(200, 'GET', `${V1}/rate-limits`);
    });
    expect(rows).toBe(0);
  });
});

async function post(path: string, body: Json, headers: Record<string, string>): Promise<void> {
  const answer = await server.call('POST', path, body, headers);
  expect(answer.status).toBeLessThan(300);
}
