/** What is refused, and that nothing is left of it. */

import { describe, expect, it } from 'vitest';
import { type Json, server, V1 } from '../support/server';

import { begin, freshQueue, step, WORKFLOWS, workflow } from './workflows';

const queue = freshQueue();
const good = () => step(queue);
const graph = (...needs: (string[] | undefined)[]) => ({
  steps: needs.map((depends_on, place) => step(queue, { id: `s${place}`, ...(depends_on && { depends_on }) })),
});
const deep = (levels: number): Json =>
  levels === 0
    ? good()
    : { type: levels % 2 === 0 ? 'chain' : 'group', steps: [deep(levels - 1)], jobs: [deep(levels - 1)] };

describe('a workflow that cannot be', () => {
  it.each<[string, Json, number, string, number?]>([
    ['has an unknown type', { type: 'tree', steps: [good()] }, 400, 'type'],
    ['has no steps', { type: 'chain' }, 400, 'steps'],
    ['has an empty list of steps', { type: 'chain', steps: [] }, 400, 'steps'],
    ['has an empty list of jobs', { type: 'group', jobs: [] }, 400, 'jobs'],
    ['is an empty graph', {}, 400, 'steps'],
    ['has steps that are no list', { type: 'chain', steps: { 0: good() } }, 400, 'steps'],
    ['has a step that is no object', { type: 'chain', steps: [good(), 'next'] }, 400, 'steps[1]'],
    ['is a batch without callbacks', { type: 'batch', jobs: [good()] }, 400, 'callbacks'],
    ['is a batch with empty callbacks', { type: 'batch', jobs: [good()], callbacks: {} }, 400, 'callbacks'],
    [
      'is a batch with an unknown callback',
      { type: 'batch', jobs: [good()], callbacks: { on_end: good() } },
      400,
      'callbacks.on_end',
    ],
    [
      'has an invalid callback',
      { type: 'batch', jobs: [good()], callbacks: { on_complete: { type: 'test.step' } } },
      400,
      'callbacks.on_complete.args',
    ],
    ['has callbacks without being a batch', { type: 'group', jobs: [good()], callbacks: {} }, 400, 'callbacks'],
    ['has a job without arguments', { type: 'chain', steps: [good(), { type: 'a.b' }] }, 400, 'steps[1].args', 1],
    [
      'has a job of an impossible type',
      { type: 'group', jobs: [step(queue, { type: 'A B' })] },
      400,
      'jobs[0].type',
      0,
    ],
    [
      'has a job with an impossible retry policy',
      { type: 'group', jobs: [good(), step(queue, { options: { retry: { backoff_coefficient: 0 } } })] },
      422,
      'jobs[1].retry.backoff_coefficient',
      1,
    ],
    [
      'has an invalid job inside another workflow',
      { type: 'chain', steps: [good(), { type: 'group', jobs: [good(), { type: 'a.b', args: null }] }] },
      400,
      'steps[1].jobs[1].args',
      1,
    ],
    ['has an empty workflow inside', { type: 'chain', steps: [{ type: 'group', jobs: [] }] }, 400, 'steps[0].jobs', 0],
    [
      'has a unique job',
      { type: 'chain', steps: [step(queue, { options: { unique: { keys: ['type'] } } })] },
      422,
      'steps[0].unique',
      0,
    ],
    ['depends on a step that is not there', graph(undefined, ['s7']), 400, 'steps[1].depends_on', 1],
    ['depends on itself', graph(['s0']), 400, 'steps[0].depends_on', 0],
    ['depends in a circle', graph(undefined, ['s0', 's3'], ['s1'], ['s2']), 400, 'steps[1].depends_on', 1],
    ['has two steps of one name', { steps: [step(queue, { id: 'a' }), step(queue, { id: 'a' })] }, 400, 'steps[1].id'],
    ['has a step whose name is no text', { steps: [step(queue, { id: 7 })] }, 400, 'steps[0].id'],
    [
      'has dependencies in a chain',
      { type: 'chain', steps: [good(), step(queue, { depends_on: ['0'] })] },
      400,
      'steps[1].depends_on',
      1,
    ],
    ['has an id that is no UUIDv7', { id: 'mine', type: 'chain', steps: [good()] }, 400, 'id'],
    ['has a name that is no text', { name: 3, type: 'chain', steps: [good()] }, 400, 'name'],
    ['has too many jobs', { type: 'group', jobs: Array.from({ length: 1001 }, good) }, 422, 'jobs'],
    [
      'has too many jobs in all',
      { type: 'chain', steps: [{ type: 'group', jobs: Array.from({ length: 1000 }, good) }, good()] },
      422,
      'steps[1]',
      1,
    ],
  ])('because it %s is refused, and nothing is enqueued', async (_, definition, status, field, index) => {
    const answer = await server.call('POST', WORKFLOWS, definition);
    expect(answer, JSON.stringify(answer.body)).toMatchObject({ status });
    const { details } = answer.body.error as { details: Json };
    expect(details.field).toBe(field);
    expect(details.index).toBe(index);
    expect(await server.counts(queue)).toMatchObject({ depth: 0, completed: 0 });
    expect(await server.ok(200, 'GET', WORKFLOWS)).toMatchObject({ total: 0 });
  });

  it('because it lies too deep is refused, and one at the limit is not', async () => {
    expect(await server.call('POST', WORKFLOWS, deep(11))).toMatchObject({ status: 400 });
    expect((await server.call('POST', WORKFLOWS, deep(10))).status).toBe(201);
  });

  it('because a queue does not take a type of it is refused, and nothing is enqueued', async () => {
    const picky = freshQueue();
    await begin({ type: 'chain', steps: [step(picky)] });
    const before = (await server.ok(200, 'GET', WORKFLOWS)).total;
    await server.configure(picky, { allowed_job_types: ['other.*'] });
    const { status, body } = await server.call('POST', WORKFLOWS, { type: 'chain', steps: [good(), step(picky)] });
    expect({ status, error: body.error }).toMatchObject({
      status: 400,
      error: { code: 'invalid_request', details: { field: 'steps[1].type', index: 1 } },
    });
    expect((await server.ok(200, 'GET', WORKFLOWS)).total).toBe(before);
  });

  it('names the steps that depend on each other in a circle', async () => {
    const { body } = await server.call('POST', WORKFLOWS, graph(undefined, ['s0', 's3'], ['s1'], ['s2']));
    expect((body.error as Json).message).toContain('s1 → s3 → s2 → s1');
  });
});

describe('a workflow', () => {
  it('takes an id of its author once', async () => {
    const id = '01962222-bbbb-7ccc-8ddd-00000000abcd';
    const definition = { id, type: 'chain', steps: [good()] };
    expect(await begin(definition)).toBe(id);
    const before = await workflow(id);
    const again = await server.call('POST', WORKFLOWS, definition);
    expect(again).toMatchObject({
      status: 409,
      body: { error: { code: 'duplicate', details: { existing_workflow_id: id } } },
    });
    expect(await workflow(id)).toEqual(before);
  });

  it('may have jobs whose type is the name of a form', async () => {
    const id = await begin({ type: 'chain', steps: [step(queue, { type: 'chain' }), step(queue, { type: 'group' })] });
    expect((await workflow(id)).steps.map(({ type }) => type)).toEqual(['chain', 'group']);
  });

  it('gives its options to jobs that do not say their own', async () => {
    const other = freshQueue();
    const id = await begin({
      type: 'group',
      options: { queue: other },
      jobs: [{ type: 'a.b', args: [] }, { type: 'a.b', args: [], queue }, good()],
    });
    expect((await workflow(id)).steps.map((shown) => shown.queue)).toEqual([other, queue, queue]);
  });

  it.each(['GET', 'DELETE'])('that does not exist is not found (%s)', async (method) => {
    for (const id of ['01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee', 'x', '01962222-BBBB-7ccc-8ddd-eeeeeeeeeeee']) {
      const { status, body } = await server.call(method, `${WORKFLOWS}/${id}`);
      expect(status).toBe(404);
      expect(body.error).toMatchObject({ code: 'not_found', details: { resource_type: 'workflow', resource_id: id } });
    }
  });
});

it('a workflow that takes more than a message holds is refused, and nothing is enqueued', async () => {
  const text = `${'x'.repeat(900_000)}€`;
  const jobs = Array.from({ length: 17 }, () => ({ type: 'a', args: [text], options: { queue: 'wide' } }));
  const answer = await server.call('POST', WORKFLOWS, { type: 'group', jobs });
  expect(answer).toMatchObject({ status: 413, body: { error: { details: { field: 'body' } } } });
  expect((await server.call('GET', `${V1}/queues/wide`)).status).toBe(404);
});
