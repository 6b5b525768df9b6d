/** Integers that a double cannot hold come back as they were written, whatever happens to their job. */
import { beforeEach, describe, expect, it } from 'vitest';
import { freshName, TestQueue } from '../../support/queue';
import { server, TestServer, V1 } from '../../support/server';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('exact');
});

const LARGE = '12345678901234567890123';
const ODD = '9007199254740993';
const ARGS = `[${ODD},{"deep":[-${LARGE},0.1,1e3]},"${ODD}"]`;

/** The text of an answer: what reads it as JSON would round it. */
async function text(method: string, path: string, body?: string, from: TestServer = server): Promise<string> {
  const answer = await from.send(
    new Request(`http://localhost${V1}${path}`, {
      method,
      ...(body !== undefined && { body, headers: { 'Content-Type': 'application/json' } }),
    }),
  );
  const told = await answer.text();
  expect(answer.status, told).toBeLessThan(300);
  return told;
}

const jobText = (rest = '') =>
  `{"type":"big","args":${ARGS},"meta":{"order":${LARGE}},"options":{"queue":"${queue}"}${rest}}`;

/** Args as they are written again: other numbers in the shortest form. */
const WRITTEN = ARGS.replace('1e3', '1000');

function expectExact(told: string): void {
  expect(told).toContain(`"args":${WRITTEN}`);
  expect(told).toContain(`"order":${LARGE}`);
}

async function enqueue(rest = ''): Promise<string> {
  const told = await text('POST', '/jobs', jobText(rest));
  return (JSON.parse(told) as { job: { id: string } }).job.id;
}

const take = () => text('POST', '/workers/fetch', `{"queues":["${queue}"],"count":5}`);

describe('large integers of a job', () => {
  it('are exact from the enqueue to the archive', async () => {
    expectExact(await text('POST', '/jobs', jobText()));
    const [id] = (await new TestQueue(queue).listAll()).map((job) => job.id);
    expectExact(await text('GET', `/jobs/${id}`));
    expectExact(await text('GET', `/admin/jobs/${id}`));
    expectExact(await take());
    await text('POST', '/workers/ack', `{"job_id":"${id}","result":{"sum":[${LARGE}]}}`);
    await new TestQueue(queue).evict();
    for (const path of [`/jobs/${id}`, `/admin/jobs/${id}`]) {
      const told = await text('GET', path);
      expectExact(told);
      expect(told).toContain(`"sum":[${LARGE}]`);
    }
    expect(await text('GET', `/jobs/${id}/result`)).toContain(`"result":{"sum":[${LARGE}]}`);
  });

  it('are exact in a batch, and in a batch of reports', async () => {
    await text('POST', '/jobs/batch', `{"jobs":[${jobText()},${jobText()}]}`);
    await text('POST', '/jobs/bulk', `{"jobs":[${jobText()}]}`);
    const told = await take();
    expectExact(told);
    const ids = (JSON.parse(told) as { jobs: { id: string }[] }).jobs.map(({ id }) => id);
    expect(ids).toHaveLength(3);
    const reports = ids.map((id) => `{"job_id":"${id}","action":"ack","result":${ODD}}`);
    await text('POST', '/workers/report', `{"reports":[${reports.join(',')}]}`);
    for (const id of ids) expect(await text('GET', `/jobs/${id}/result`)).toContain(`"result":${ODD}`);
  });

  it('are exact on their way to a handler and back', async () => {
    const told = await text(
      'POST',
      '/jobs',
      `{"type":"raw.order","args":[{"do":"echo","number":-${LARGE}}],"options":{"queue":"raw"}}`,
    );
    const { id } = (JSON.parse(told) as { job: { id: string } }).job;
    await server.jobIn(id, ['completed']);
    expect(await text('GET', `/jobs/${id}/result`)).toContain(`"result":[-${LARGE}]`);
  });

  it('stay so when the job is changed, retried with other arguments and cloned', async () => {
    const id = await enqueue();
    await text('PATCH', `/jobs/${id}`, '{"priority":5}');
    expectExact(await text('GET', `/jobs/${id}`));
    await text('DELETE', `/jobs/${id}`);
    const retried = await text('POST', `/admin/jobs/${id}/retry`, `{"args":[${LARGE}]}`);
    expect(retried).toContain(`"args":[${LARGE}]`);
    expect(retried).toContain(`"order":${LARGE}`);
    expect(await text('POST', `/admin/jobs/${id}/clone`)).toContain(`"args":[${LARGE}]`);
    expect(await text('GET', '/admin/audit?action=job.retry')).toContain(id);
  });

  it('tell unique jobs apart, and are found', async () => {
    const unique = (number: string) =>
      text(
        'POST',
        '/jobs',
        `{"type":"u","args":[${number}],"options":{"queue":"${queue}","unique":{"keys":["type","args"],"on_conflict":"ignore"}}}`,
      );
    const first = await unique(ODD);
    expect(await unique('9007199254740992')).not.toContain('"deduplicated":true');
    const again = await unique(ODD);
    expect(again).toContain('"deduplicated":true');
    expect(JSON.parse(again).job.id).toBe(JSON.parse(first).job.id);
    const found = JSON.parse(await text('GET', `/admin/jobs?queue=${queue}&q=${ODD}`)) as { items: { id: string }[] };
    expect(found.items.map(({ id }) => id)).toEqual([JSON.parse(first).job.id]);
    expect(await text('GET', `/admin/jobs?queue=${queue}&q=${ODD}&arguments=true`)).toContain(`"args":[${ODD}]`);
  });

  it('are hidden where a rule hides them, and shown where none does', async () => {
    const id = await enqueue();
    const viewer = TestServer.with({ API_KEYS: JSON.stringify([{ key: 'v', role: 'viewer' }]), REDACT: 'order' });
    const answer = await viewer.send(
      new Request(`http://localhost${V1}/jobs/${id}`, { headers: { Authorization: 'Bearer v' } }),
    );
    const told = await answer.text();
    expect(told).toContain(`"args":${WRITTEN}`);
    expect(told).toContain('"order":"[redacted]"');
  });

  it('are numbers like others where the protocol calculates', async () => {
    const wrong = (options: string) =>
      server.refusal('POST', `${V1}/jobs`, `{"type":"t","args":[],"options":${options}}`);
    expect(await wrong(`{"priority":${LARGE}}`)).toMatchObject({ status: 400, field: 'options.priority' });
    expect(await wrong(`{"retry":{"max_attempts":${LARGE}}}`)).toMatchObject({ status: 422 });
    expect(await wrong(`{"meta":${LARGE}}`)).toMatchObject({ status: 400 });
    expect(await server.refusal('POST', `${V1}/jobs`, `{"type":"t","args":[${'9'.repeat(400)}]}`)).toMatchObject({
      status: 400,
    });
  });
});
