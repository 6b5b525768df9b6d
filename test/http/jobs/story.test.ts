/** One call tells all of a job's life. */
import { expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();

const story = (id: string) => server.ok(200, 'GET', `${V1}/admin/jobs/${id}?timeline=true`);
const kinds = ({ timeline }: Json) => (timeline as Json[]).map(({ kind }) => kind);

it('a timeline lists attempts with times, delays, workers and errors, and everything else on record', async () => {
  const queue = freshName('story');
  const retry = { max_attempts: 3, initial_interval: 'PT5M', jitter: false, backoff_strategy: 'constant' };
  const parent = await server.enqueue(freshName('story'));
  const id = await server.enqueue(queue, { options: { retry, meta: { parent_id: parent, cron_name: 'nightly' } } });
  const child = await server.enqueue(queue, {
    options: { meta: { parent_id: id }, delay_until: '2039-01-01T00:00:00Z' },
  });
  await server.take(queue, { count: 1, worker_id: 'w-1' });
  const of = { worker_id: 'w-1' };
  await server.ok(200, 'POST', `${V1}/jobs/${id}/log`, { ...of, lines: [{ message: 'began', fields: { n: 1 } }] });
  await server.ok(200, 'POST', `${V1}/jobs/${id}/progress`, { ...of, progress: 0.5, message: 'half' });
  await server.ok(200, 'PUT', `${V1}/jobs/${id}/checkpoint`, { ...of, state: { at: 7 } });
  await server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/one`, { ...of, result: 'first' });
  const error = { type: 'E', message: 'no', stack: 'E: no\n    at here' };
  await server.nack(id, { error, worker_id: 'w-1' });

  const waiting = await story(id);
  expect(waiting).toMatchObject({
    ...{ id, state: 'retryable', waiting_for: { reason: 'retry' }, cron_name: 'nightly' },
    attempts: [{ attempt: 1, state: 'failed', worker_id: 'w-1', duration_ms: expect.any(Number), error }],
    log: [{ message: 'began', fields: { n: 1 } }],
    checkpoint: { state: { at: 7 }, sequence: 1 },
    steps: { one: { result: 'first' } },
    progress_message: 'half',
    parent: { id: parent, state: 'available' },
    children: { items: [{ id: child, state: 'scheduled' }], more: false },
  });
  const step = { kind: 'step', name: 'one', is: 'result', at: expect.any(String) };
  expect(waiting.timeline).toContainEqual(step);
  expect(kinds(waiting)).toEqual(
    expect.arrayContaining(['created', 'attempt_started', 'log', 'progress', 'checkpoint', 'attempt_failed']),
  );
  expect(waiting.timeline).toContainEqual(
    expect.objectContaining({ kind: 'attempt_failed', error: { type: 'E', code: 'handler_error', message: 'no' } }),
  );
  const times = (waiting.timeline as Json[]).map(({ at }) => at as string);
  expect(times).toEqual([...times].sort());

  await server.ok(200, 'POST', `${V1}/admin/jobs/${id}/activate`);
  await server.take(queue, { count: 1, worker_id: 'w-2' });
  const running = await story(id);
  expect(running.attempts).toMatchObject([
    { attempt: 1, state: 'failed' },
    { attempt: 2, state: 'active', delay_ms: 300_000, worker_id: 'w-2', started_at: expect.any(String) },
  ]);
  expect((running.attempts as Json[])[1]).not.toHaveProperty('ended_at');
  await server.ack(id, { worker_id: 'w-2', result: { ok: true } });
  const done = await story(id);
  expect(done).toMatchObject({
    ...{ state: 'completed', result: { ok: true }, log: [{ message: 'began' }], steps: { one: { result: 'first' } } },
    attempts: [
      { state: 'failed', worker_id: 'w-1' },
      { state: 'completed', worker_id: 'w-2', ended_at: expect.any(String) },
    ],
  });
  expect(kinds(done)).toEqual(expect.arrayContaining(['attempt_completed']));
});

it('a timeline is not sent unless it is requested', async () => {
  const id = await server.enqueue(freshName('story'));
  const job = await server.ok(200, 'GET', `${V1}/admin/jobs/${id}`);
  for (const name of ['timeline', 'attempts', 'children', 'log']) expect(job).not.toHaveProperty(name);
  expect(await server.refusal('GET', `${V1}/admin/jobs/${id}?timeline=yes`)).toMatchObject({
    status: 400,
    field: 'timeline',
  });
});

it('a timeline still names a parent that was deleted', async () => {
  const gone = '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee';
  const id = await server.enqueue(freshName('story'), { options: { meta: { parent_id: gone } } });
  expect((await story(id)).parent).toEqual({ id: gone });
});
