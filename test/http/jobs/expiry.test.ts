/** A job that could never run is refused, or named in a warning, whichever way it comes in. */
import { describe, expect, it } from 'vitest';
import { clock, iso, SECOND, T0 } from '../../support/clock';
import { freshName, TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();
clock.startAtT0();

const job = (options: Json) => ({ type: 'test.late', args: [], options });

type WayIn = [string, string, (options: Json) => Json, string];
const WAYS_IN: WayIn[] = [
  ['a job', '/jobs', job, 'options'],
  ['a batch', '/jobs/batch', (options) => ({ jobs: [job({ queue: options.queue }), job(options)] }), 'jobs[1].options'],
  ['a workflow', '/workflows', (options) => ({ type: 'chain', steps: [job(options)] }), 'steps[0].options'],
  [
    'a schedule',
    '/cron',
    (options) => ({ name: 'late', expression: '@daily', job_template: job(options) }),
    'job_template.options',
  ],
];

describe.each(WAYS_IN)('%s', (_, path, body, at) => {
  it('that expires before it may start is refused', async () => {
    const options = { queue: freshName(), delay_until: '+PT2H', expires_at: '+PT1H' };
    expect(await server.refusal('POST', V1 + path, body(options))).toMatchObject({
      status: 422,
      code: 'invalid_request',
      field: `${at}.expires_at`,
    });
    expect(await server.ok(200, 'GET', `${V1}/queues`)).toMatchObject({ total: 0 });
  });

  it('that has expired is accepted with a warning', async () => {
    const answer = await server.ok(201, 'POST', V1 + path, body({ queue: freshName(), expires_at: iso(T0 - SECOND) }));
    expect(answer.warnings).toEqual([`${at}.expires_at is in the past: the job is discarded without a run.`]);
  });
});

it('names the entry of several that is refused, and enqueues the others', async () => {
  const queue = freshName();
  const late = job({ queue, scheduled_at: '+PT1H', expires_at: '+PT1H' });
  const answer = await server.ok(207, 'POST', `${V1}/jobs/bulk`, { jobs: [late, job({ queue })] });
  expect(answer).toMatchObject({
    items: [{ error: { code: 'invalid_request', details: { field: 'jobs[0].options.expires_at' } } }, {}],
  });
});

it('discards a job that began in time when it would be retried too late', async () => {
  const queue = new TestQueue(freshName());
  const retry = { max_attempts: 3, initial_interval: 'PT40S', jitter: false };
  const id = await server.enqueue(queue.name, { options: { expires_at: '+PT1M', retry } });
  const fail = async () => server.nack((await server.takeOne(queue.name)).id, { error: 'x' });
  expect(await fail()).toMatchObject({ state: 'retryable' });
  clock.advance(40 * SECOND);
  expect(await fail()).toMatchObject({ state: 'retryable', attempt: 2 });
  await queue.passTo(T0 + 60 * SECOND);
  expect((await server.ok(200, 'GET', `${V1}/jobs/${id}`)).job).toMatchObject({
    state: 'discarded',
    discard_reason: 'expired',
  });
});
