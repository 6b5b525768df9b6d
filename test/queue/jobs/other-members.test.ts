/** Where a value is stored, a member of another name is refused: it would be lost without a word. */
import { beforeEach, describe, expect, it } from 'vitest';
import { onRecord } from '../../support/on-record';
import { freshName } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();
let id: string;
beforeEach(async () => {
  const queue = freshName('members');
  id = await server.enqueue(queue);
  await server.takeOne(queue, { worker_id: 'w1' });
});

const shown = async () => [
  await server.job(id),
  (await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps,
  (await server.ok(200, 'GET', `${V1}/jobs/${id}/progress`)).progress,
];

const ROUTES: readonly [method: string, path: string, wrong: Json, field: string, meant: string][] = [
  ['POST', '/jobs/:id/signals/paid', { order: 7 }, 'order', 'payload'],
  ['POST', '/jobs/:id/signals/paid', { payload: 1, by: 'ada' }, 'by', 'payload'],
  ['POST', '/jobs/:id/signals/paid', { paylaod: 1 }, 'paylaod', 'payload'],
  ['PUT', '/jobs/:id/steps/charge', { value: 5 }, 'value', 'result'],
  ['PUT', '/jobs/:id/checkpoint', { state: 1, page: 3 }, 'page', 'state'],
  ['POST', '/checkpoints/:id', { page: 3 }, 'page', 'state'],
  ['PUT', '/jobs/:id/progress', { progress: 0.5, rows: 3 }, 'rows', 'progress'],
  ['POST', '/workers/progress', { percentage: 5, mesage: 'x' }, 'mesage', 'message'],
  ['POST', '/workers/ack', { sent: true }, 'sent', 'result'],
  ['POST', '/jobs/:id/ack', { reslut: 1 }, 'reslut', 'result'],
  ['POST', '/workers/nack', { message: 'no' }, 'message', 'error'],
  ['POST', '/jobs/:id/nack', { error: 'no', requeu: true }, 'requeu', 'requeue'],
  ['POST', '/jobs/:id/log', { lines: [], line: 'x' }, 'line', 'lines'],
];

describe('a member of another name', () => {
  it.each(ROUTES)('%s %s with %j is refused, and nothing is stored', async (method, path, wrong, field, meant) => {
    const before = await shown();
    const body = path.includes(':id') ? wrong : { job_id: id, ...wrong };
    const answer = await server.call(method, V1 + path.replace(':id', id), body);
    expect([answer.status, answer.body.error]).toMatchObject([400, { code: 'invalid_request', details: { field } }]);
    expect(answer.body.error?.message).toContain(meant);
    expect(await shown()).toEqual(before);
  });

  it('is refused of one of many reports, too', async () => {
    const reports = [{ action: 'ack', job_id: id, value: 7 }];
    const told = await server.ok(207, 'POST', `${V1}/workers/report`, { worker_id: 'w1', reports });
    expect(told.items).toMatchObject([{ job_id: id, error: { details: { field: 'value' } } }]);
    expect(await server.state(id)).toBe('active');
  });
});

describe('a signal', () => {
  it.each([
    ['half of an emoji', '{"payload":"\\ud83d"}'],
    ['101 levels', `{"payload":${'['.repeat(101)}${']'.repeat(101)}}`],
  ])('with %s is refused, and can be sent again', async (_, body) => {
    const path = `${V1}/jobs/${id}/signals/paid`;
    const refused = await server.call('POST', path, body);
    expect([refused.status, refused.body.error?.details?.field]).toEqual([400, 'payload']);
    await server.ok(200, 'POST', path, { payload: 'whole' });
    expect((await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps).toMatchObject({
      paid: { signal: { payload: 'whole' } },
    });
  });
});

describe('a step', () => {
  it('may say what it failed with', async () => {
    await server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/charge`, { error: { message: 'declined' } });
    expect((await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps).toEqual(
      onRecord({ charge: { error: { message: 'declined' } } }),
    );
  });
});
