/** Each of many reports is judged alone: one that cannot be stored fails its own job, and hurts no other. */
import { describe, expect, it } from 'vitest';
import { freshName } from '../../../support/queue';
import { type Body, type Json, server, V1 } from '../../../support/server';
import { WorkerSocket } from '../../../support/worker-socket';

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

/** Results as JSON text that cannot be kept, and how their runs fail. */
const UNKEPT: readonly [what: string, result: string, code: string][] = [
  ['half of an emoji', '{"text":"\\ud83d"}', 'result_not_text'],
  ['half of an emoji in a name', '[{"\\ude00":1}]', 'result_not_text'],
  ['101 levels', nested(101), 'result_too_deep'],
  ['100,000 levels', nested(100_000), 'result_too_deep'],
  ['a number beyond doubles', '[1e400]', 'result_out_of_range'],
  ['more than 1 MiB', JSON.stringify('x'.repeat(1_048_576)), 'result_too_large'],
];

async function held(queue: string, count: number): Promise<Json[]> {
  const options = { queue, retry: { max_attempts: 3 } };
  await server.addAll(Array.from({ length: count }, () => ({ type: 'a.b', args: [], options })));
  return server.take(queue, { count, worker_id: 'w1' });
}

const ack = ({ id, attempt, delivery_id }: Json, result: string): string =>
  `{"action":"ack","job_id":"${id}","attempt":${attempt},"delivery_id":"${delivery_id}","result":${result}}`;

const text = async (status: number, path: string, body: string): Promise<Body> => {
  const answer = await server.call('POST', `${V1}${path}`, body);
  expect(answer.status, JSON.stringify(answer.body.error)).toBe(status);
  return answer.body;
};

/** Sends reports each way. @returns the outcomes */
const WAYS: readonly [way: string, send: (queue: string, reports: string[]) => Promise<Body>][] = [
  [
    'in a request',
    async (_, reports) => {
      const { status, body } = await server.call(
        'POST',
        `${V1}/workers/report`,
        `{"worker_id":"w1","reports":[${reports}]}`,
      );
      expect(status).toBe(body.failed === 0 ? 200 : 207);
      return body;
    },
  ],
  [
    'with a fetch',
    async (queue, reports) => {
      const body = `{"queues":["${queue}"],"worker_id":"w1","reports":[${reports}]}`;
      return (await text(200, '/workers/fetch', body)).reports as unknown as Body;
    },
  ],
  [
    'over a socket',
    async (queue, reports) => {
      const worker = await WorkerSocket.open(queue);
      worker.say(`{"type":"report","id":7,"reports":[${reports}]}`);
      const told = await worker.get('reported');
      expect(told.id).toBe(7);
      return told as Body;
    },
  ],
];

describe.each(WAYS)('among reports %s', (_, send) => {
  it.each(UNKEPT)('a result of %s ends its own attempt, and the others count', async (_, result, code) => {
    const queue = freshName('parts');
    const [first, bad, last] = (await held(queue, 3)) as [Json, Json, Json];
    const { succeeded, failed, items } = await send(queue, [
      ack(first, '"one"'),
      ack(bad, result),
      ack(last, nested(100)),
    ]);
    expect([succeeded, failed]).toEqual([2, 1]);
    expect(items).toMatchObject([
      { job_id: first.id, status: 'done', state: 'completed' },
      { index: 1, job_id: bad.id, status: 'failed', error: { retryable: false, details: { field: 'result' } } },
      { job_id: last.id, status: 'done', state: 'completed' },
    ]);
    expect(await server.job(first.id as string)).toMatchObject({ state: 'completed', result: 'one' });
    expect(await server.job(last.id as string)).toMatchObject({ state: 'completed', attempt: 1 });
    // As when a pushed handler answers so: another run would return the same.
    expect(await server.job(bad.id as string)).toMatchObject({ state: 'discarded', error: { code, type: code } });
  });

  it.each([
    ['progress', '"progress":0.5,"message":"\\ud83d"', 'message'],
    ['progress', '"progress":0.5,"data":{"a":"\\ud83d"}', 'data'],
    ['progress', `"progress":0.5,"data":{"a":${nested(100)}}`, 'data'],
    ['checkpoint', '"state":["\\ud83d"]', 'state'],
    ['checkpoint', `"state":${nested(101)}`, 'state'],
    ['step', '"name":"s","result":"\\ud83d"', 'step'],
    ['step', `"name":"s","result":${nested(101)}`, 'step'],
    ['step', '"name":"\\ud83d","result":1', 'name'],
  ])('a %s with %s is refused alone, and its attempt continues', async (action, members, field) => {
    const queue = freshName('parts');
    const [first, bad, last] = (await held(queue, 3)) as [Json, Json, Json];
    const wrong = `{"action":"${action}","job_id":"${bad.id}",${members}}`;
    const { succeeded, failed, items } = await send(queue, [ack(first, '1'), wrong, ack(last, '3')]);
    expect([succeeded, failed]).toEqual([2, 1]);
    expect(items).toMatchObject([
      { status: 'done', state: 'completed' },
      { index: 1, status: 'failed', error: { status: 400, details: { field } } },
      { status: 'done', state: 'completed' },
    ]);
    expect(await server.state(bad.id as string)).toBe('active');
  });

  it('an error and lines of the log are kept with U+FFFD for half of an emoji', async () => {
    const queue = freshName('parts');
    const [first, bad, last] = (await held(queue, 3)) as [Json, Json, Json];
    const error = `{"type":"E\\ud83d","message":"no \\ude00","details":{"a\\ud83d":["\\\\ud83d","\\ud83d","é"]}}`;
    const log = `[{"level":"info","message":"half \\ud83d","fields":{"b":"\\ud83d"}}]`;
    const nack = `{"action":"nack","job_id":"${bad.id}","error":${error},"log":${log}}`;
    expect(await send(queue, [ack(first, '1'), nack, ack(last, '3')])).toMatchObject({ succeeded: 3, failed: 0 });
    expect(await server.job(bad.id as string)).toMatchObject({
      state: 'retryable',
      error: { type: 'E\ufffd', message: 'no \ufffd', details: { 'a\ufffd': ['\\ud83d', '\ufffd', 'é'] } },
    });
    const { lines } = await server.ok(200, 'GET', `${V1}/jobs/${bad.id}/log`);
    expect(lines).toMatchObject([{ message: 'half \ufffd', fields: { b: '\ufffd' } }]);
  });
});

describe('a report in a request of its own', () => {
  it.each(UNKEPT)('with a result of %s is refused and changes nothing', async (_, result, code) => {
    const [job] = (await held(freshName('parts'), 1)) as [Json];
    for (const path of ['/workers/ack', `/jobs/${job.id}/ack`]) {
      const { error } = await text(
        code === 'result_too_large' ? 413 : 400,
        path,
        `{"job_id":"${job.id}","result":${result}}`,
      );
      expect(error).toMatchObject({ details: { field: 'result' } });
      if (code !== 'result_too_large') expect(error?.type).toBe(code);
    }
    expect(await server.state(job.id as string)).toBe('active');
    await text(200, '/workers/ack', `{"job_id":"${job.id}","result":${nested(100)}}`);
  });
});

describe('a message that cannot be read', () => {
  it.each(['{"type":"report","id":4,"reports":[}', '{"type":"report","id":4,"reports":[],"x":"\\ud83d"}'])(
    'is answered with its id: %s',
    async (message) => {
      const worker = await WorkerSocket.open(freshName('parts'));
      worker.say(message);
      expect(await worker.get('error')).toMatchObject({ id: 4, error: { status: 400, code: 'invalid_payload' } });
    },
  );
});
