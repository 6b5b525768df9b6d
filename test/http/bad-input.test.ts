/** Whatever is wrong with a request is said by status, code and field, and nothing is written. */

import { describe, expect, it } from 'vitest';
import { server, UNKNOWN_ID, V1 } from '../support/server';

server.emptyBeforeEach();

const job = { type: 'test.echo', args: [] };
const utf8 = (text: string) => new TextEncoder().encode(text);

interface Case {
  name: string;
  path: string;
  method?: string;
  /** A value is sent as JSON; text and bytes are sent as they are. */
  body?: unknown;
  headers?: Record<string, string>;
  status: number;
  code: string;
  field?: string;
  index?: number;
}

const BODIES: Case[] = [
  { name: 'no body', path: '/jobs', status: 400, code: 'invalid_payload' },
  { name: 'an empty body', path: '/jobs', body: '', status: 400, code: 'invalid_payload' },
  { name: 'a body that is no JSON', path: '/jobs', body: '{"type":', status: 400, code: 'invalid_payload' },
  { name: 'a list as body', path: '/jobs', body: [], status: 400, code: 'invalid_payload' },
  { name: 'null as body', path: '/jobs', body: 'null', status: 400, code: 'invalid_payload' },
  {
    name: 'bad UTF-8',
    path: '/jobs',
    body: new Uint8Array([...utf8('{"type":"a","args":["'), 0xff, ...utf8('"]}')]),
    status: 400,
    code: 'invalid_payload',
  },
  {
    name: 'a surrogate encoded as if it were a character',
    path: '/jobs',
    body: new Uint8Array([...utf8('{"type":"a","args":["'), 0xed, 0xa0, 0x80, ...utf8('"]}')]),
    status: 400,
    code: 'invalid_payload',
  },
  {
    name: 'a lone surrogate in args',
    path: '/jobs',
    body: '{"type":"a","args":["\\ud800"]}',
    status: 400,
    code: 'invalid_payload',
    field: 'args[0]',
  },
  {
    name: 'a lone surrogate in a name',
    path: '/jobs',
    body: '{"type":"a","args":[],"x":{"\\udc00":1}}',
    status: 400,
    code: 'invalid_payload',
    field: 'x',
  },
  {
    name: 'nesting of 101 levels',
    path: '/jobs',
    body: `{"type":"a","args":${'['.repeat(100)}${']'.repeat(100)}}`,
    status: 400,
    code: 'invalid_payload',
  },
  {
    name: 'nesting that would overflow a recursive reader',
    path: '/jobs',
    body: `{"type":"a","args":${'['.repeat(400_000)}${']'.repeat(400_000)}}`,
    status: 400,
    code: 'invalid_payload',
  },
  {
    name: 'another media type',
    path: '/jobs',
    body: job,
    headers: { 'Content-Type': 'text/plain' },
    status: 400,
    code: 'invalid_request',
    field: 'Content-Type',
  },
  {
    name: 'a body above 1 MiB',
    path: '/jobs',
    body: { type: 'a', args: ['x'.repeat(1_048_576)] },
    status: 413,
    code: 'payload_too_large',
    field: 'body',
  },
  {
    name: 'another protocol version',
    path: '/jobs',
    body: job,
    headers: { 'OJS-Version': '2.0' },
    status: 422,
    code: 'unsupported',
  },
  {
    name: 'a long idempotency key',
    path: '/jobs',
    body: job,
    headers: { 'Idempotency-Key': 'x'.repeat(257) },
    status: 400,
    code: 'invalid_request',
    field: 'Idempotency-Key',
  },
];

const bad = (name: string, field: string, change: Record<string, unknown>, status = 400): Case => ({
  name,
  path: '/jobs',
  body: { ...job, options: { queue: 'refused' }, ...change },
  status,
  code: status === 413 ? 'payload_too_large' : 'invalid_request',
  field,
});

const JOBS: Case[] = [
  bad('a type in upper case', 'type', { type: 'Email' }),
  bad('args that are an object', 'args', { args: {} }),
  bad('a priority of 101', 'options.priority', { options: { queue: 'refused', priority: 101 } }),
  bad('a queue in upper case', 'options.queue', { options: { queue: 'Refused' } }),
  bad('an id of another version', 'id', { id: '550e8400-e29b-41d4-a716-446655440000' }),
  bad('a date without time', 'options.delay_until', { options: { queue: 'refused', delay_until: '2030-01-01' } }),
  bad('meta above 64 KiB', 'meta', { meta: { a: 'x'.repeat(70_000) } }, 413),
  bad(
    'retry.max_attempts of −1',
    'retry.max_attempts',
    { options: { queue: 'refused', retry: { max_attempts: -1 } } },
    422,
  ),
  bad(
    'a coefficient below 1',
    'retry.backoff_coefficient',
    { options: { queue: 'refused', retry: { backoff_coefficient: 0.5 } } },
    422,
  ),
];

const BATCHES: Case[] = [
  { name: 'a batch without jobs', path: '/jobs/batch', body: {}, status: 400, code: 'invalid_request', field: 'jobs' },
  {
    name: 'an empty batch',
    path: '/jobs/batch',
    body: { jobs: [] },
    status: 400,
    code: 'invalid_request',
    field: 'jobs',
  },
  {
    name: 'a batch of 1001',
    path: '/jobs/batch',
    body: { jobs: Array(1001).fill(job) },
    status: 413,
    code: 'payload_too_large',
    field: 'jobs',
  },
  {
    name: 'one bad entry among good ones',
    path: '/jobs/batch',
    body: {
      jobs: [
        { ...job, queue: 'refused' },
        { ...job, queue: 'refused', options: { priority: 999 } },
      ],
    },
    status: 400,
    code: 'invalid_request',
    field: 'jobs[1].options.priority',
    index: 1,
  },
  {
    name: 'an entry that is no object',
    path: '/jobs/batch',
    body: { jobs: [{ ...job, queue: 'refused' }, 7] },
    status: 400,
    code: 'invalid_request',
    field: 'jobs[1]',
    index: 1,
  },
  {
    name: 'an id used twice in a batch',
    path: '/jobs/batch',
    body: {
      jobs: [
        { ...job, queue: 'refused', id: '01962222-aaaa-7ccc-8ddd-eeeeeeeeeeee' },
        { ...job, queue: 'refused', id: '01962222-aaaa-7ccc-8ddd-eeeeeeeeeeee' },
      ],
    },
    status: 409,
    code: 'duplicate',
    index: 1,
  },
];

const worker = (path: string, name: string, field: string, body: unknown): Case => ({
  name: `${path} with ${name}`,
  path,
  body,
  status: 400,
  code: 'invalid_request',
  field,
});

const nack = (name: string, field: string, error: unknown): Case =>
  worker('/workers/nack', name, field, { job_id: UNKNOWN_ID, error });

const WORKERS: Case[] = [
  worker('/workers/fetch', 'no queues', 'queues', {}),
  worker('/workers/fetch', 'an empty list of queues', 'queues', { queues: [] }),
  worker('/workers/fetch', 'a queue that is no name', 'queues[1]', { queues: ['refused', 'Bad!'] }),
  worker('/workers/fetch', '101 queues', 'queues', { queues: Array.from({ length: 101 }, (_, n) => `q${n}`) }),
  worker('/workers/fetch', 'a count that is no integer', 'count', { queues: ['refused'], count: 1.5 }),
  worker('/workers/fetch', 'an empty worker id', 'worker_id', { queues: ['refused'], worker_id: '' }),
  worker('/jobs/fetch', 'a negative lease', 'visibility_timeout_ms', {
    queues: ['refused'],
    visibility_timeout_ms: -1,
  }),
  worker('/workers/ack', 'no job', 'job_id', {}),
  worker('/workers/ack', 'a job that is no text', 'job_id', { job_id: 7 }),
  worker('/workers/ack', 'attempt 0', 'attempt', { job_id: UNKNOWN_ID, attempt: 0 }),
  nack('an error that is a list', 'error', []),
  nack('an error that is a number', 'error', 7),
  nack('a code that is no text', 'error.code', { code: 7 }),
  nack('retry_in that is no duration', 'error.retry_in', { retry_in: 'soon' }),
  nack('retry_at without a zone', 'error.retry_at', { retry_at: '2030-01-01T00:00:00' }),
  nack('classes that are no list', 'error.classes', { classes: 'Error' }),
  worker('/workers/heartbeat', 'no worker', 'worker_id', {}),
  worker('/workers/beat', 'jobs that are a text', 'active_jobs', { worker_id: 'w', active_jobs: 'all' }),
  {
    name: 'an ack of an id that is none',
    path: '/workers/ack',
    body: { job_id: 'x' },
    status: 404,
    code: 'not_found',
  },
  {
    name: 'an ack of a job that nobody has',
    path: '/workers/ack',
    body: { job_id: UNKNOWN_ID },
    status: 404,
    code: 'not_found',
  },
];

const get = (path: string, field: string): Case => ({
  name: `GET ${path}`,
  method: 'GET',
  path,
  status: 400,
  code: 'invalid_request',
  field,
});

const QUERIES: Case[] = [
  get('/jobs?limit=ten', 'limit'),
  get('/jobs?offset=1.5', 'offset'),
  get('/jobs?state=sleeping', 'state'),
  get('/jobs?queue=Bad!', 'queue'),
  get('/jobs?cursor=rubbish', 'cursor'),
  get('/jobs?cursor=e30', 'cursor'),
  get('/dead-letter?since=yesterday', 'since'),
  get('/dead-letter?cursor=e30', 'cursor'),
  get('/events?types=job.exploded', 'types'),
  get('/events?after=7', 'after'),
];

/** Whatever is sent, it is said what is wrong with it, in a few words. */
const huge = 'x'.repeat(100_000);
const HOSTILE: Case[] = [
  get('/jobs?queue=%20', 'queue'),
  get('/jobs?type=%20', 'type'),
  get('/jobs/count?state=%20,', 'state'),
  get('/dead-letter?queue=%09', 'queue'),
  get(`/jobs?state=${huge}`, 'state'),
  {
    name: 'dead letters of a queue without a name',
    path: '/dead-letter/purge?queue=&older_than=PT0S',
    status: 400,
    code: 'invalid_request',
    field: 'queue',
  },
  ...[{ meta: {} }, { where: {} }, { priority: {} }, { attempts: {} }].map((filter) => ({
    name: `a filter that says nothing: ${JSON.stringify(filter)}`,
    path: '/jobs/bulk/cancel',
    body: { filter },
    status: 400,
    code: 'invalid_request',
    field: `filter.${Object.keys(filter)[0]}`,
  })),
  ...[{}, { options: {} }].map((body) => ({
    name: `a change of nothing: ${JSON.stringify(body)}`,
    method: 'PATCH',
    path: `/jobs/${UNKNOWN_ID}`,
    body,
    status: 400,
    code: 'invalid_request',
    field: 'body',
  })),
  ...[
    ['/jobs', '{"type":"a","args":[],"retry":{"max_attempts":1e400}}', 'retry.max_attempts'],
    ['/jobs', '{"type":"a","args":[],"options":{"retry":{"table":[1,-1e400]}}}', 'retry.table[1]'],
    [
      '/jobs/batch',
      '{"jobs":[{"type":"a","args":[],"retry":{"backoff_coefficient":1e400}}]}',
      'retry.backoff_coefficient',
    ],
  ].map(([path, body, field]) => ({
    name: `a policy with a number beyond doubles on ${path}, ${field}`,
    path: path as string,
    body,
    status: 422,
    code: 'invalid_request',
    field: field as string,
  })),
  ...[
    '{"type":"a","args":[{"retry":{"max_attempts":1e400}}]}',
    '{"type":"a","args":[{"retry":{"max_attempts":-1e400}}]}',
  ].map((body) => ({
    name: `a number beyond doubles: ${body}`,
    path: '/jobs',
    body,
    status: 400,
    code: 'invalid_payload',
    field: 'args[0].retry.max_attempts',
  })),
  {
    name: 'a huge specversion',
    path: '/jobs',
    body: { ...job, specversion: `2.${'1'.repeat(100_000)}` },
    status: 422,
    code: 'unsupported',
    field: 'specversion',
  },
  {
    name: 'a huge media type',
    path: '/jobs',
    body: job,
    headers: { 'Content-Type': `text/${huge}` },
    status: 400,
    code: 'invalid_request',
    field: 'Content-Type',
  },
  {
    name: 'a huge version',
    path: '/jobs',
    body: job,
    headers: { 'OJS-Version': huge },
    status: 422,
    code: 'unsupported',
  },
  { name: 'a huge path', path: `/${huge}`, status: 404, code: 'not_found' },
  { name: 'a huge id', method: 'GET', path: `/jobs/${huge}`, status: 404, code: 'not_found' },
  {
    name: 'a huge cron expression',
    path: '/cron',
    body: { name: 'c', expression: huge, job_template: job },
    status: 400,
    code: 'invalid_request',
    field: 'expression',
  },
];

const QUEUES: Case[] = [
  {
    name: 'a queue setting that is not offered',
    method: 'PUT',
    path: '/queues/refused/config',
    body: { max_weight: 10 },
    status: 422,
    code: 'unsupported',
    field: 'max_weight',
  },
  {
    name: 'a retention of an unknown state',
    method: 'PUT',
    path: '/queues/refused/config',
    body: { retention: { active: 'P1D' } },
    status: 422,
    code: 'unsupported',
    field: 'retention.active',
  },
  {
    name: 'a concurrency of 0',
    method: 'PUT',
    path: '/queues/refused/config',
    body: { concurrency: 0 },
    status: 400,
    code: 'invalid_request',
    field: 'concurrency',
  },
  { name: 'a queue that is no name', path: '/queues/Bad!/pause', status: 400, code: 'invalid_request', field: 'name' },
  { name: 'an unknown queue', method: 'GET', path: '/queues/nowhere', status: 404, code: 'not_found' },
  { name: 'an unknown job', method: 'GET', path: `/jobs/${UNKNOWN_ID}`, status: 404, code: 'not_found' },
  { name: 'a job id that is none', method: 'DELETE', path: '/jobs/7', status: 404, code: 'not_found' },
  {
    name: 'a dead letter that is none',
    method: 'DELETE',
    path: `/dead-letter/${UNKNOWN_ID}`,
    status: 404,
    code: 'not_found',
  },
];

describe('a request that is refused', () => {
  it.each([...BODIES, ...JOBS, ...BATCHES, ...WORKERS, ...QUERIES, ...HOSTILE, ...QUEUES])(
    'because of $name says so and writes nothing',
    async ({ path, method = 'POST', body, headers, status, code, field, index }) => {
      const answer = await server.call(method, V1 + path, body, headers);
      const { error } = answer.body;
      expect({ status: answer.status, code: error?.code, field: error?.details?.field }).toEqual({
        status,
        code,
        field,
      });
      expect(JSON.stringify(answer.body).length).toBeLessThan(4000);
      if (index !== undefined) expect(error?.details?.index).toBe(index);
      expect(error).toMatchObject({
        retryable: false,
        request_id: answer.headers.get('X-Request-ID'),
        message: expect.stringMatching(/./),
        hint: expect.stringMatching(/./),
        docs_url: expect.stringMatching(/^https:/),
      });
      expect(await server.ok(200, 'GET', `${V1}/jobs`)).toMatchObject({ total: 0 });
      expect((await server.ok(200, 'GET', `${V1}/queues/refused/config`)).config).toEqual({});
    },
  );

  it('because its result is above 1 MiB leaves the job active', async () => {
    const id = await server.enqueue('big-result');
    await server.take('big-result');
    const answer = await server.call('POST', `${V1}/workers/ack`, { job_id: id, result: 'x'.repeat(1_048_577) });
    expect(answer).toMatchObject({ status: 413, body: { error: { details: { field: 'result' } } } });
    expect(await server.job(id)).toMatchObject({ state: 'active' });
  });
});

describe('names that a client made up', () => {
  const name = 'x'.repeat(100_000);

  it.each<[string, string, unknown]>([
    ['PATCH', `/jobs/${UNKNOWN_ID}`, { [name]: 1 }],
    ['PUT', '/queues/refused/config', { [name]: 1 }],
    ['PUT', '/queues/refused/config', { retention: { [name]: 1 } }],
    ['POST', '/jobs', { ...job, retry: { [name]: 1 } }],
    ['POST', '/jobs', { ...job, unique: { [name]: 1 } }],
    ['POST', '/jobs', { ...job, rate_limit: { key: 'a', [name]: 1 } }],
    ['POST', '/jobs/bulk/cancel', { filter: { [name]: 1 } }],
    ['POST', '/jobs/bulk/cancel', { filter: { where: { [`args.${name}[`]: 1 } } }],
    ['POST', '/workflows', { type: 'batch', jobs: [job], callbacks: { [name]: job } }],
    ['POST', '/workflows', { steps: [{ ...job, id: 'a', depends_on: ['y'.repeat(255)] }] }],
    ['POST', '/admin/retry/preview', { [name]: 1 }],
    ['POST', '/cron', { name: 'x', expression: '@daily', timezone: name, job }],
    ['POST', '/cron', { name: 'x', expression: '@daily', timezone: 'Not a zone '.repeat(90), job }],
    ['POST', '/cron', { name: 'x', expression: '@daily', timezone: { [name]: 1 }, job }],
    ['POST', '/cron', { name: 'x', expression: `@${'so often '.repeat(100)}`, job }],
    ['POST', '/cron', { name: 'x', expression: `* * * * ${'x'.repeat(900)}`, job }],
    ['POST', '/jobs', { ...job, options: { unique: { keys: ['args'], args_keys: [name] } } }],
  ])('are quoted in their beginning: %s %s', async (method, path, body) => {
    const answer = await server.call(method, V1 + path, body);
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expect(JSON.stringify(answer.body).length).toBeLessThan(4000);
    expect(answer.body.error?.message?.length).toBeLessThan(700);
    // What is wrong with it is said behind the quote.
    expect(answer.body.error?.message).toMatch(/[^x…" ]$/);
  });
});

describe('a condition on a number', () => {
  it('that JSON cannot have matches no null, and digits after a zero are text', async () => {
    await server.enqueue('numbers', { args: [null, '007'] });
    const count = async (query: string) => (await server.ok(200, 'GET', `${V1}/jobs/count?${query}`)).count;
    expect(await count('args.0=1e400')).toBe(0);
    expect(await count('args.0=null')).toBe(1);
    expect(await count('args.1=007')).toBe(1);
  });
});
