import { describe, expect, it } from 'vitest';
import { runsOf } from '../../support/handlers';
import { type Json, server, V1 } from '../../support/server';

const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const OTHER = '00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00';
const job = (options: Json = {}): Json => ({ type: 'test.job', args: [], options });

/** What the jobs of a request have in meta. */
async function metas(path: string, body: Json, headers: Record<string, string>): Promise<unknown[]> {
  const answer = await server.ok(201, 'POST', `${V1}${path}`, body, headers);
  const jobs = answer.items?.map(({ job: made }) => made as Json) ?? answer.jobs ?? [answer.job as Json];
  return jobs.map(({ meta }) => meta);
}

describe('the trace of a request', () => {
  const headers = { traceparent: TRACE, tracestate: 'vendor=1' };
  const trace = { traceparent: TRACE, tracestate: 'vendor=1' };

  it('is used by every job in it, unless the job names its own', async () => {
    const own = { meta: { traceparent: OTHER, a: 1 } };
    expect(await metas('/jobs', job(), headers)).toEqual([trace]);
    expect(await metas('/jobs', job({ meta: { a: 1 } }), { traceparent: TRACE })).toEqual([
      { a: 1, traceparent: TRACE },
    ]);
    expect(await metas('/jobs', job(own), headers)).toEqual([own.meta]);
    for (const path of ['/jobs/batch', '/jobs/bulk']) {
      expect(await metas(path, { jobs: [job(), job(own)] }, headers)).toEqual([trace, own.meta]);
    }
  });

  it.each([
    '',
    'x',
    TRACE.toUpperCase(),
    `${TRACE}-more`,
    TRACE.replace('00-', 'ff-'),
    '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01',
    `01-${TRACE.slice(3)}-${'x'.repeat(300)}`,
  ])('is ignored when it is %j', async (traceparent) => {
    expect(await metas('/jobs', job(), { traceparent, tracestate: 'a=1' })).toEqual([{}]);
  });

  it('may be of a later version, and has no state that is too long', async () => {
    const traceparent = `01-${TRACE.slice(3)}-more`;
    expect(await metas('/jobs', job(), { traceparent, tracestate: 'a'.repeat(513) })).toEqual([{ traceparent }]);
  });

  it.each([
    ['/jobs', job()],
    ['/jobs/batch', { jobs: [job()] }],
    ['/jobs/bulk', { jobs: [job()] }],
  ])('does not turn a repeated request into a new one, and is not in its answer: %s', async (path, body) => {
    const key = { 'Idempotency-Key': crypto.randomUUID() };
    const asked = async (traceparent: string) => {
      const answer = await server.ok(201, 'POST', `${V1}${path}`, body, { ...key, traceparent });
      return (answer.items?.[0]?.job ?? answer.jobs?.[0] ?? answer.job) as Json;
    };
    const first = await asked(TRACE);
    expect(first.meta).toEqual({ traceparent: TRACE });
    expect(await asked(OTHER)).toMatchObject({ id: first.id, meta: {} });
    expect((await server.job(first.id as string)).meta).toEqual({ traceparent: TRACE });
  });

  it('is sent to the handler in the headers of a single call', async () => {
    const { id } = await server.ok(201, 'POST', `${V1}/jobs`, { type: 'plain.order', args: [{}] }, headers);
    await server.jobIn(id as string, 'completed');
    expect((await runsOf('PLAIN', id as string))[0]?.headers).toMatchObject(trace);
  });

  it('is in meta of the jobs of a batch', async () => {
    const { id } = await server.ok(201, 'POST', `${V1}/jobs`, { type: 'work.echo', args: [] }, headers);
    expect(await server.jobIn(id as string, ['completed', 'discarded', 'retryable'])).toMatchObject({ meta: trace });
  });
});
