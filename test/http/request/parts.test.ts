/** Requests about many jobs: each part is judged alone, and the body as a whole only where it cannot be read. */
import { describe, expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { server, UNKNOWN_ID, V1 } from '../../support/server';
import { WorkerSocket } from '../../support/worker-socket';

server.emptyBeforeEach();

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const count = async (queue: string) => (await server.ok(200, 'GET', `${V1}/jobs/count?queue=${queue}`)).count;
const jobs = (queue: string, ...args: string[]) =>
  args.map((one) => `{"type":"a.b","args":[${one}],"options":{"queue":"${queue}"}}`).join(',');

/** Arguments that cannot be stored, and what is said of the second job that has them. */
const TORN: readonly [what: string, arg: string, details: object][] = [
  ['half of an emoji', '{"name":"\\ud83d"}', { field: 'jobs[1].args[0].name' }],
  ['half of an emoji in a name', '{"\\ude00":1}', { field: 'jobs[1].args[0]' }],
  ['a number beyond doubles', '[0,1e400]', { field: 'jobs[1].args[0][1]' }],
  ['101 levels', nested(99), { field: 'jobs[1]', max_depth: 100 }],
  ['100,000 levels', nested(100_000), { field: 'jobs[1]', max_depth: 100 }],
];

describe.each(TORN)('a job with %s', (_, arg, details) => {
  it('is refused alone among jobs that are enqueued each on its own', async () => {
    const queue = freshName('parts');
    const { status, body } = await server.call('POST', `${V1}/jobs/bulk`, `{"jobs":[${jobs(queue, '1', arg, '3')}]}`);
    expect(status).toBe(207);
    expect(body.items).toMatchObject([
      { status: 'created' },
      { index: 1, status: 'failed', error: { code: 'invalid_payload', details: { ...details, index: 1 } } },
      { status: 'created' },
    ]);
    expect(await count(queue)).toBe(2);
  });

  it('is named where a batch is refused for it', async () => {
    const queue = freshName('parts');
    const { status, body } = await server.call('POST', `${V1}/jobs/batch`, `{"jobs":[${jobs(queue, '1', arg)}]}`);
    expect([status, body.error]).toMatchObject([400, { code: 'invalid_payload', details: { ...details, index: 1 } }]);
    const producer = await WorkerSocket.open(queue);
    producer.say(`{"type":"enqueue","id":5,"jobs":[${jobs(queue, '1', arg)}]}`);
    expect(await producer.get('error')).toMatchObject({ id: 5, error: { details: { ...details, index: 1 } } });
    expect(await count(queue)).toBe(0);
  });
});

describe('many jobs', () => {
  it('may each nest 100 levels, as one that is sent alone', async () => {
    const queue = freshName('parts');
    const { status } = await server.call('POST', `${V1}/jobs/bulk`, `{"jobs":[${jobs(queue, nested(98), '2')}]}`);
    expect(status).toBe(201);
    expect((await server.call('POST', `${V1}/jobs`, jobs(queue, nested(98)))).status).toBe(201);
    expect((await server.call('POST', `${V1}/jobs`, jobs(queue, nested(99)))).status).toBe(400);
  });

  it('are refused together for a member next to them that cannot be stored, and for bad JSON', async () => {
    const queue = freshName('parts');
    for (const more of ['"x":"\\ud83d"', `"x":${nested(101)}`, '"\\ud83d":1', '"x":']) {
      const body = `{"jobs":[${jobs(queue, '1')}],${more}}`;
      expect((await server.call('POST', `${V1}/jobs/bulk`, body)).body.error, more).toMatchObject({
        code: 'invalid_payload',
      });
    }
    expect(await count(queue)).toBe(0);
  });

  it('are found by ids, also when one of them is not text', async () => {
    const queue = freshName('parts');
    const id = await server.enqueue(queue);
    const named = `["${id}","\\ud83d","${UNKNOWN_ID}"]`;
    const results = await server.call('POST', `${V1}/jobs/results`, `{"ids":${named}}`);
    expect([results.status, (results.body.missing as unknown as string[]).length]).toEqual([200, 2]);
    const cancelled = await server.call('POST', `${V1}/jobs/bulk/cancel`, `{"job_ids":${named}}`);
    expect(cancelled.status).toBe(207);
    expect(cancelled.body.items).toMatchObject([
      { job_id: id, status: 'cancelled' },
      { status: 'failed', reason: 'not_found' },
      { status: 'failed', reason: 'not_found' },
    ]);
  });
});

describe('a compressed body', () => {
  it('is refused with the coding that it has, and with those that are accepted', async () => {
    const stream = new Blob(['{"type":"a.b","args":[]}']).stream().pipeThrough(new CompressionStream('gzip'));
    const body = new Uint8Array(await new Response(stream).arrayBuffer());
    for (const path of ['/jobs', '/jobs/bulk', '/workers/ack', '/admin/queues/x/import']) {
      const {
        status,
        headers,
        body: told,
      } = await server.call('POST', V1 + path, body, {
        'Content-Encoding': 'gzip',
      });
      expect([path, status, headers.get('Accept-Encoding')]).toEqual([path, 415, 'identity']);
      expect(told.error).toMatchObject({ code: 'unsupported', details: { field: 'Content-Encoding' } });
      expect(told.error?.message).toContain('gzip');
    }
  });

  it('is one only if it says so', async () => {
    const body = { type: 'a.b', args: [], options: { queue: freshName('parts') } };
    expect((await server.call('POST', `${V1}/jobs`, body, { 'Content-Encoding': 'identity' })).status).toBe(201);
  });
});
