import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { clock, until } from '../../../support/clock';
import { Gate, handler, runsOf } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { type Json, server, TestServer, V1 } from '../../../support/server';
import type { Arrival } from '../../../support/workers/internet';

const arrivals = (id: string) => handler<Arrival[]>('INTERNET', `/arrivals?about=${id}`);
const URL_OF_JOB = 'https://app.example/jobs/of/its/own?a=1';
const order = (target_url: string, options: Json = {}) => ({
  type: 'own.order',
  args: [{}],
  options: { queue: 'job-urls', target_url, ...options },
});

clock.restoreAfterEach();

describe('a job that names a URL', () => {
  it('is sent there, signed, in a queue that nothing is mapped to', async () => {
    const { id, job } = await server.ok(201, 'POST', `${V1}/jobs`, order(URL_OF_JOB));
    expect(job).toMatchObject({ target_url: URL_OF_JOB });
    expect(await server.jobIn(id as string, 'completed')).toMatchObject({ attempt: 1, target_url: URL_OF_JOB });
    const [{ url, headers, body }] = (await arrivals(id as string)) as [Arrival];
    expect(url).toBe(URL_OF_JOB);
    expect(JSON.parse(body)).toMatchObject({ job: { id, type: 'own.order' }, worker_id: 'push_app.example' });
    expect(new Webhook('old-secret-of-tests', { format: 'raw' }).verify(body, headers)).toBeTruthy();
  });

  it('is sent there whatever its type is mapped to, and others of its type are not', async () => {
    const queue = 'job-urls-mapped';
    const [own, mapped] = await server.addAll([
      { type: 'plain.order', args: [{}], options: { queue, target_url: 'https://a.hooks.example/x' } },
      { type: 'plain.order', args: [{ target_url: '"target_url":"https://app.example/"' }], options: { queue } },
    ]);
    for (const id of [own, mapped]) await server.jobIn(id as string, 'completed');
    expect(await runsOf('PLAIN', own as string)).toEqual([]);
    expect((await arrivals(own as string)).map(({ url }) => url)).toEqual(['https://a.hooks.example/x']);
    expect(await runsOf('PLAIN', mapped as string)).toHaveLength(1);
    expect(await arrivals(mapped as string)).toEqual([]);
  });

  it('keeps its URL through delays and retries', async () => {
    const retry = { max_attempts: 2, initial_interval: 1, backoff_strategy: 'constant', jitter: false };
    const job = { ...order(URL_OF_JOB, { retry, delay_until: 'PT1S' }), args: [{ status: 500 }] };
    const { id } = await server.ok(201, 'POST', `${V1}/jobs`, job);
    await server.jobIn(id as string, 'discarded');
    expect((await arrivals(id as string)).map(({ url }) => url)).toEqual([URL_OF_JOB, URL_OF_JOB]);
  });

  it('stops with its host when that cannot be reached, and no other host does', async () => {
    const queue = 'job-urls-down';
    const retry = { max_attempts: 10, initial_interval: 1, backoff_strategy: 'constant', jitter: false };
    await server.ok(201, 'POST', `${V1}/jobs`, order('https://down.example/', { queue, retry }));
    await until(
      async () => (await server.events({ queue, types: 'queue.push_suspended' })).length > 0,
      'the host to be stopped',
    );
    expect(await server.events({ queue, types: 'queue.push_suspended' })).toMatchObject([
      { data: { target: 'down.example' } },
    ]);
    const waits = await server.ok(201, 'POST', `${V1}/jobs`, order('https://down.example/2', { queue }));
    const runs = await server.ok(201, 'POST', `${V1}/jobs`, order(URL_OF_JOB, { queue }));
    await server.jobIn(runs.id as string, 'completed');
    expect(await server.job(waits.id as string)).toMatchObject({ state: 'available', attempt: 0 });
  });

  it('shares the six connections of its queue with mapped URLs', async () => {
    const queue = 'job-urls-six';
    const gate = new Gate('INTERNET');
    const jobs = Array.from({ length: 9 }, (_, index) => ({
      type: 'web.order',
      args: gate.args,
      options: { queue, timeout_ms: 10_000, ...(index % 2 && { target_url: URL_OF_JOB }) },
    }));
    const ids = await server.addAll(jobs);
    await gate.waiting(6);
    await gate.open();
    for (const id of ids) await server.jobIn(id, 'completed');
    expect((await gate.load()).most).toBe(6);
  });

  it('has a wake that stands by while it is not sent', async () => {
    const queue = new TestQueue('job-urls-wake');
    await queue.add();
    expect(await queue.armedAt()).toBeNull();
    await queue.inside(({ engine }) => {
      (engine as unknown as { push: { pump(): void } }).push.pump = () => undefined;
    });
    await queue.add({ body: { target_url: URL_OF_JOB } });
    expect(await queue.armedAt()).not.toBeNull();
  });

  it('waits while its host is allowed no more, though its type is mapped', async () => {
    const queue = new TestQueue('job-urls-gone');
    const [job] = await queue.enqueue({ type: 'plain.order', body: { target_url: 'https://gone.example/' } });
    await server.jobIn(await server.add('plain.order', [{}], { queue: queue.name }), 'completed');
    expect(await queue.get(job?.id as string)).toMatchObject({ state: 'available', attempt: 0 });
  });
});

describe('the URL that a job names', () => {
  const refused = async (target_url: unknown, on = server, path = '/jobs', body?: Json) => {
    const answer = await on.call('POST', `${V1}${path}`, body ?? order(target_url as string));
    const { field, index } = answer.body.error?.details ?? {};
    return { status: answer.status, field, ...(index !== undefined && { index }) };
  };
  const field = 'options.target_url';

  it.each([
    'https://other.example/',
    'https://hooks.example/',
    'https://evilhooks.example/',
    'https://a.hooks.example.evil.example/',
    'https://app.example.evil.example/',
    'https://app.example@evil.example/',
    'https://evil.example/?https://app.example/',
    'https://app.example:8443/',
    'http://app.example/',
    'https://user@app.example/',
    'https://10.0.0.1/',
    'http://localhost/',
    'http://localhost:8789/',
    'app.example',
    '',
    7,
    {},
  ])('is not %j', async (url) => {
    expect(await refused(url)).toEqual({ status: 400, field });
  });

  it('names the host that is not allowed', async () => {
    const { body } = await server.call('POST', `${V1}/jobs`, order('https://other.example/x'));
    expect(body.error?.message).toBe(
      'options.target_url: jobs may not be sent to other.example; ALLOWED_TARGET_HOSTS lists where they may.',
    );
  });

  it('is stored as it is called, in any spelling, also at the top level and in many', async () => {
    const spelled = 'HTTPS://App.Example:443/a/../b';
    const top = { type: 'own.order', args: [], target_url: spelled };
    expect((await server.ok(201, 'POST', `${V1}/jobs`, top)).job).toMatchObject({
      target_url: 'https://app.example/b',
    });
    const local = TestServer.with({ ALLOWED_TARGET_HOSTS: 'localhost:8788' });
    const job = order('http://localhost:8788/x', { pending: true });
    const here = await local.ok(201, 'POST', `${V1}/jobs`, job);
    expect(here.job).toMatchObject({ target_url: 'http://localhost:8788/x' });
    for (const path of ['/jobs/batch', '/jobs/bulk']) {
      await server.ok(201, 'POST', `${V1}${path}`, { jobs: [order(spelled)] });
    }
    expect(await refused('', server, '/jobs/batch', { jobs: [order(spelled), order('https://x.example/')] })).toEqual({
      status: 400,
      field: 'jobs[1].options.target_url',
      index: 1,
    });
  });

  it('is refused where no host is allowed', async () => {
    const closed = TestServer.with({ ALLOWED_TARGET_HOSTS: '' });
    expect(await refused(URL_OF_JOB, closed)).toEqual({ status: 400, field });
  });

  it('is refused in schedules and workflows', async () => {
    const template = { type: 'a.b', args: [], options: { target_url: URL_OF_JOB } };
    const cron = { name: 'urls', expression: '* * * * *', job_template: template };
    expect(await server.call('POST', `${V1}/cron`, cron)).toMatchObject({ status: 400 });
    const workflow = { type: 'chain', name: 'urls', steps: [template] };
    expect(await server.call('POST', `${V1}/workflows`, workflow)).toMatchObject({ status: 400 });
  });
});

describe('ALLOWED_TARGET_HOSTS', () => {
  const asked = async (variables: Json) =>
    (await TestServer.with(variables).call('POST', `${V1}/jobs`, order(URL_OF_JOB, { pending: true }))).body.error
      ?.details;

  it.each([
    'https://app.example',
    'app.example/path',
    '*',
    '*.example.',
    '*.com',
    'localhost.',
    '10.0.0.1',
    'a,*.local',
  ])('is not %j', async (hosts) => {
    expect(await asked({ ALLOWED_TARGET_HOSTS: hosts })).toMatchObject({ variable: 'ALLOWED_TARGET_HOSTS' });
  });

  it('allows this machine in development alone', async () => {
    const closed = { ALLOW_LOCALHOST: undefined, API_KEYS: undefined };
    const { readHostTargets } = await import('../../../../src/dispatch/hosts');
    const env = { ALLOWED_TARGET_HOSTS: 'localhost:8788', TARGET_SECRET: 'secret-of-the-tests', ...closed };
    expect(() => readHostTargets(env, { loopback: false })).toThrow(/localhost:8788/);
    expect(readHostTargets(env, { loopback: true })).toHaveLength(1);
  });

  it('needs a secret, and a signature that exists', async () => {
    expect(await asked({ TARGET_SECRET: '' })).toMatchObject({ missing: ['TARGET_SECRET'] });
    expect(await asked({ TARGET_SIGNATURE: 'standard md5' })).toEqual({ variable: 'TARGET_SIGNATURE' });
    expect(await asked({ TARGET_SIGNATURE: 'qstash, ojs' })).toBeUndefined();
  });
});

describe('what a job with a URL waits for', () => {
  it('is its host, a free connection, or that its host is allowed', async () => {
    const gone = new TestQueue('job-urls-why');
    const [job] = await gone.enqueue({
      type: 'plain.order',
      body: { target_url: 'https://gone.example/hook?token=secret' },
    });
    expect((await server.job(job?.id as string)).waiting_for).toMatchObject({
      reason: 'no_handler',
      detail: 'ALLOWED_TARGET_HOSTS does not list the host of its target_url https://gone.example/[redacted].',
    });
    const queue = 'job-urls-full';
    const gate = new Gate('INTERNET');
    const jobs = Array.from({ length: 7 }, () => ({ ...order(URL_OF_JOB, { queue }), args: gate.args }));
    const ids = await server.addAll(jobs);
    await gate.waiting(6);
    expect((await server.job(ids[6] as string)).waiting_for).toMatchObject({
      reason: 'concurrency',
      detail: expect.stringContaining('6 answers from URLs'),
    });
    await gate.open();
    for (const id of ids) await server.jobIn(id, 'completed');
  });

  it('is not said to be a handler of its type', async () => {
    const job = { ...order(URL_OF_JOB, { queue: 'handled' }), type: 'nobody.takes' };
    const answer = await server.call('POST', `${V1}/jobs`, job);
    expect(answer.headers.get('Warning')).toBeNull();
    expect(await server.jobIn(answer.body.id as string, 'completed')).toMatchObject({ target_url: URL_OF_JOB });
  });

  it('is tried at once when an operator says so', async () => {
    const queue = 'job-urls-resume';
    const retry = { max_attempts: 20, initial_interval: 1, backoff_strategy: 'constant', jitter: false };
    const { id } = await server.ok(201, 'POST', `${V1}/jobs`, order('https://down.example/r', { queue, retry }));
    const suspended = async () => (await server.events({ queue, types: 'queue.push_suspended' })).length > 0;
    await until(suspended, 'the host to be stopped');
    const before = (await arrivals(id as string)).length;
    expect(await server.ok(200, 'GET', `${V1}/targets/down.example?queue=${queue}`)).toMatchObject({
      state: 'stopped',
    });
    await until(async () => (await server.job(id as string)).state === 'available', 'its job to wait for it');
    await server.ok(200, 'POST', `${V1}/targets/down.example/resume?queue=${queue}`);
    await until(async () => (await arrivals(id as string)).length > before, 'the trial');
    const calls = await arrivals(id as string);
    expect(calls.every(({ body }) => body.includes('"job"'))).toBe(true);
  });
});
