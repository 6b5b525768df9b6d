/** Groups, batches, graphs, and workflows in each other, over HTTP. */

import { describe, expect, it } from 'vitest';
import { until } from '../support/clock';
import { type Json, server } from '../support/server';

import {
  ack,
  begin,
  fail,
  fetchJobs,
  fetchOne,
  freshQueue,
  nack,
  type Shown,
  step,
  WORKFLOWS,
  work,
  workflow,
  workflowIn,
} from './workflows';

const steps = (queue: string, count: number, change: Json = {}) =>
  Array.from({ length: count }, () => step(queue, change));

/** Waits until the queues have taken these callbacks. */
async function calledFor(id: string, ...names: string[]): Promise<void> {
  await until(
    async () => {
      const { callbacks } = await workflow(id);
      return names.every((name) => callbacks[name]?.job_id);
    },
    `the callbacks ${names.join(' and ')}`,
  );
}

describe('a group', () => {
  it('starts all jobs at once and completes with the last of them', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: steps(queue, 3) });
    expect(await workflow(id)).toMatchObject({ jobs_total: 3, jobs_completed: 0, jobs_failed: 0, steps_total: 3 });
    const jobs = await fetchJobs(queue);
    expect(jobs.map(({ parent_results }) => parent_results)).toEqual([[], [], []]);
    for (const one of jobs.slice(0, 2)) await ack(one);
    await until(async () => (await workflow(id)).jobs_completed === 2, 'two completed jobs');
    expect((await workflow(id)).state).toBe('running');
    await ack(jobs[2] as Json);
    expect(await workflowIn(id, 'completed')).toMatchObject({ jobs_total: 3, jobs_completed: 3, jobs_failed: 0 });
  });

  it('lets the others run on when one fails, and fails with the last of them', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: steps(queue, 3) });
    const [one, two, three] = (await fetchJobs(queue)) as [Json, Json, Json];
    await nack(one);
    await ack(two);
    await until(async () => (await workflow(id)).jobs_failed === 1, 'the failure');
    expect(await workflow(id)).toMatchObject({ state: 'running', jobs_failed: 1 });
    await ack(three);
    expect(await workflowIn(id, 'failed')).toMatchObject({ jobs_total: 3, jobs_completed: 2, jobs_failed: 1 });
  });
});

describe('a batch', () => {
  /** One queue for each callback, so that a test sees which came. */
  async function batch(ends: ('ack' | 'nack')[]) {
    const queue = freshQueue();
    const callbacks = Object.fromEntries(
      ['on_complete', 'on_success', 'on_failure'].map((name) => [name, step(`${queue}-${name.replace('_', '-')}`)]),
    );
    const id = await begin({ type: 'batch', jobs: steps(queue, ends.length), callbacks });
    const jobs = await fetchJobs(queue);
    for (const [place, end] of ends.entries()) {
      await (end === 'ack' ? ack(jobs[place] as Json, { place }) : nack(jobs[place] as Json));
    }
    const called = (name: string) => fetchJobs(`${queue}-${name.replace('_', '-')}`);
    return { id, called };
  }

  it('shows which of its jobs run, and counts one that was cancelled among those that failed', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: [step(queue), step(queue)] });
    const [job] = await fetchJobs(queue, 1);
    const states = async () => (await workflow(id)).steps.map(({ state }) => state);
    expect(await states()).toEqual(['active', 'pending']);
    const other = (await workflow(id)).steps[1]?.job_id;
    await server.ok(200, 'POST', `/ojs/v1/jobs/${other}/cancel`);
    await ack(job as Json);
    expect(await workflowIn(id, 'failed')).toMatchObject({
      jobs_completed: 1,
      jobs_failed: 1,
      metadata: { job_count: 2, completed_count: 1, failed_count: 1 },
    });
    expect(await states()).toEqual(['completed', 'cancelled']);
  });

  it('calls on_complete and on_success once each when no job failed, with all results', async () => {
    const { id, called } = await batch(['ack', 'ack']);
    const ended = await workflowIn(id, 'completed');
    expect(ended).toMatchObject({ jobs_total: 2, jobs_completed: 2, metadata: { job_count: 2 } });
    await calledFor(id, 'on_complete', 'on_success');
    const results = [{ place: 0 }, { place: 1 }];
    expect(await called('on_complete')).toMatchObject([{ workflow_id: id, parent_results: results }]);
    expect(await called('on_success')).toMatchObject([{ workflow_id: id, parent_results: results }]);
    expect(await called('on_failure')).toEqual([]);
    expect(ended.callbacks.on_failure).toMatchObject({ state: 'skipped', job_id: null });
  });

  it('calls on_complete and on_failure once each when a job failed, with null for it', async () => {
    const { id, called } = await batch(['ack', 'nack', 'ack']);
    await workflowIn(id, 'failed');
    await calledFor(id, 'on_complete', 'on_failure');
    const results = [{ place: 0 }, null, { place: 2 }];
    expect(await called('on_complete')).toMatchObject([{ parent_results: results }]);
    expect(await called('on_failure')).toMatchObject([{ parent_results: results }]);
    expect(await called('on_success')).toEqual([]);
  });

  it('has the state of its jobs, whatever becomes of a callback', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'batch', jobs: [step(queue)], callbacks: { on_complete: step(`${queue}-cb`) } });
    await work(queue);
    await fail(`${queue}-cb`);
    await until(async () => (await workflow(id)).callbacks.on_complete?.state === 'failed', 'the failed callback');
    expect((await workflow(id)).state).toBe('completed');
  });
});

describe('a graph whose callbacks are steps that depend on all others', () => {
  /** As most clients of the protocol write a batch. */
  async function batch(names: readonly string[], ends: ('ack' | 'nack')[]) {
    const queue = freshQueue();
    const parts = ends.map((_, place) => step(queue, { id: `job-${place}`, depends_on: [] }));
    const depends_on = parts.map(({ id }) => id);
    const callbacks = names.map((id) => step(`${queue}-callbacks`, { id, type: `test.${id}`, depends_on }));
    const id = await begin({ name: 'batch', steps: [...parts, ...callbacks] });
    const jobs = await fetchJobs(queue);
    expect(jobs).toHaveLength(ends.length);
    for (const [place, end] of ends.entries()) {
      await (end === 'ack' ? ack(jobs[place] as Json, { place }) : nack(jobs[place] as Json));
    }
    return { id, work: () => work(`${queue}-callbacks`), rest: () => fetchJobs(`${queue}-callbacks`) };
  }

  const states = ({ steps }: Shown) => Object.fromEntries(steps.map(({ id, state }) => [id, state]));

  it.each([[['on_complete', 'on_success', 'on_failure']], [['on-complete', 'on-success', 'on-failure']]])(
    'calls %s as those of a batch',
    async (names) => {
      const [complete, success, failure] = names as [string, string, string];
      const good = await batch(names, ['ack', 'ack']);
      expect(await workflowIn(good.id, 'completed')).toMatchObject({ type: 'graph', steps_total: 2 });
      const called = [await good.work(), await good.work()];
      expect(called.map(({ type }) => type).sort()).toEqual([`test.${complete}`, `test.${success}`]);
      expect(called[0]).toMatchObject({ parent_results: [{ place: 0 }, { place: 1 }] });
      expect(await good.rest()).toEqual([]);
      await until(async () => states(await workflow(good.id))[success] === 'completed', 'the end of the callback');
      const shown = await workflow(good.id);
      expect(states(shown)).toMatchObject({ 'job-0': 'completed', [complete]: 'completed', [failure]: 'skipped' });
      expect(shown.steps[4]).toMatchObject({ callback: 'on_failure', depends_on: ['job-0', 'job-1'], job_id: null });

      const bad = await batch(names, ['nack', 'ack']);
      await workflowIn(bad.id, 'failed');
      const types = [await bad.work(), await bad.work()].map(({ type }) => type).sort();
      expect(types).toEqual([`test.${complete}`, `test.${failure}`]);
      expect(await bad.rest()).toEqual([]);
    },
  );

  it('may have an order among its other steps', async () => {
    const queue = freshQueue();
    const node = (id: string, ...depends_on: string[]) => step(queue, { id, type: `test.${id}`, depends_on });
    const id = await begin({ steps: [node('on_failure', 'a', 'b'), node('a'), node('b', 'a')] });
    await fail(queue);
    expect(await workflowIn(id, 'failed')).toMatchObject({ steps_total: 2 });
    expect(await work(queue)).toMatchObject({ type: 'test.on_failure' });
  });

  it.each<[string, Json[]]>([
    ['that depends on some others only', [{ id: 'a' }, { id: 'b' }, { id: 'on_success', depends_on: ['a'] }]],
    ['that another step depends on', [{ id: 'on_success' }, { id: 'a', depends_on: ['on_success'] }]],
    ['that stands alone', [{ id: 'on_success' }]],
    ['of another name', [{ id: 'a' }, { id: 'on_end', depends_on: ['a'] }]],
  ])('runs a step %s in its turn', async (_, nodes) => {
    const queue = freshQueue();
    const id = await begin({ steps: nodes.map((node) => step(queue, node)) });
    for (const _node of nodes) await work(queue);
    expect(await workflowIn(id, 'completed')).toMatchObject({ steps_total: nodes.length });
  });
});

describe('a graph', () => {
  it('starts a step when all it depends on have completed', async () => {
    const queue = freshQueue();
    const node = (id: string, ...depends_on: string[]) => step(queue, { id, type: `test.${id}`, depends_on });
    const id = await begin({
      name: 'diamond',
      steps: [node('d', 'b', 'c'), node('a'), node('b', 'a'), node('c', 'a')],
      options: { queue: 'ignored-because-each-says-its-own' },
    });
    expect(await work(queue, 1)).toMatchObject({ type: 'test.a', parent_results: [] });
    await until(async () => (await workflow(id)).steps[3]?.job_id, 'b and c');
    const [b, c] = (await fetchJobs(queue)) as [Json, Json];
    expect([b.type, c.type].sort()).toEqual(['test.b', 'test.c']);
    await ack(b, b.type);
    await until(async () => (await workflow(id)).steps_completed === 2, 'the first of them');
    expect(await fetchJobs(queue)).toEqual([]);
    await ack(c, c.type);
    expect(await work(queue)).toMatchObject({ type: 'test.d', parent_results: [null, 1, 'test.b', 'test.c'] });
    const ended = await workflowIn(id, 'completed');
    expect(ended.type).toBe('graph');
    expect(ended.steps.map((shown) => [shown.id, shown.depends_on])).toEqual([
      ['d', ['b', 'c']],
      ['a', []],
      ['b', ['a']],
      ['c', ['a']],
    ]);
  });

  it('starts nothing after a failure, and fails when what is running has ended', async () => {
    const queue = freshQueue();
    const id = await begin({
      steps: [step(queue, { id: 'a' }), step(queue, { id: 'b' }), step(queue, { id: 'c', depends_on: ['b'] })],
    });
    const [a, b] = (await fetchJobs(queue)) as [Json, Json];
    await nack(a);
    await until(async () => (await workflow(id)).steps_failed === 1, 'the failure');
    expect((await workflow(id)).state).toBe('running');
    await ack(b);
    const ended = await workflowIn(id, 'failed');
    expect(ended.steps.map(({ state }) => state)).toEqual(['failed', 'completed', 'cancelled']);
    expect(await fetchJobs(queue)).toEqual([]);
  });
});

describe('workflows in each other', () => {
  it('run by their own rules and hand results in and out', async () => {
    const queue = freshQueue();
    const id = await begin({
      type: 'chain',
      steps: [
        step(queue),
        {
          type: 'group',
          name: 'transform',
          jobs: [step(queue), { type: 'chain', steps: [step(queue), step(queue)] }],
        },
        { type: 'batch', jobs: [step(queue)], callbacks: { on_success: step(`${queue}-cb`) } },
        step(queue),
      ],
    });
    expect(await workflow(id)).toMatchObject({ steps_total: 4, metadata: { job_count: 6 } });
    await work(queue, 'extract');
    await until(async () => (await workflow(id)).steps[1]?.job_ids.length === 2, 'the group');
    const inner = await fetchJobs(queue);
    expect(inner.map(({ parent_results }) => parent_results)).toEqual([['extract'], ['extract']]);
    await ack(inner[0] as Json, 'g0');
    await ack(inner[1] as Json, 'g1-first');
    expect(await work(queue, 'g1')).toMatchObject({ parent_results: ['g1-first'] });
    expect(await work(queue, 'b0')).toMatchObject({ parent_results: ['extract', ['g0', 'g1']] });
    expect(await work(`${queue}-cb`)).toMatchObject({ parent_results: ['b0'] });
    expect(await work(queue)).toMatchObject({ parent_results: ['extract', ['g0', 'g1'], ['b0']] });
    const ended = await workflowIn(id, 'completed');
    expect(ended).toMatchObject({ steps_completed: 4, metadata: { completed_count: 6 } });
    expect(ended.steps[1]).toMatchObject({ type: 'group', name: 'transform', state: 'completed', job_id: null });
    expect(ended.steps[1]?.steps[1]?.steps.map(({ state }) => state)).toEqual(['completed', 'completed']);
    expect(ended.steps[1]?.job_ids).toHaveLength(3);
  });

  it('fail the step they stand for', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [{ type: 'group', jobs: steps(queue, 2) }, step(queue)] });
    const [one, two] = (await fetchJobs(queue)) as [Json, Json];
    await nack(one);
    await ack(two);
    const ended = await workflowIn(id, 'failed');
    expect(ended.steps.map(({ state }) => state)).toEqual(['failed', 'cancelled']);
    expect(await fetchJobs(queue)).toEqual([]);
  });
});

describe('large results', () => {
  it('of up to 1 MiB reach the next step', async () => {
    const queue = freshQueue();
    await begin({ type: 'chain', steps: steps(queue, 2) });
    const large = 'x'.repeat(1_048_000);
    await work(queue, large);
    expect((await fetchOne(queue)).parent_results).toEqual([large]);
  });

  it('that do not fit together are left out, the largest first, and name the job that has them', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: steps(queue, 4) });
    await work(queue, 'x'.repeat(900_000));
    await work(queue, 'small');
    await work(queue, 'y'.repeat(800_000));
    const last = await fetchOne(queue);
    const [first] = (await workflow(id)).steps;
    expect(last.parent_results).toEqual([
      { omitted: true, job_id: first?.job_id, bytes: 900_002 },
      'small',
      'y'.repeat(800_000),
    ]);
    expect((await server.ok(200, 'GET', `/ojs/v1/jobs/${first?.job_id}/result`)).result).toHaveLength(900_000);
  });
});

describe('the list of workflows', () => {
  it('shows the latest first, by state and by page, with their ends', async () => {
    await server.ok(200, 'POST', '/ojs/v1/admin/reset');
    const queue = freshQueue();
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push(await begin({ type: 'chain', name: `n${n}`, steps: [step(queue)] }));
    await work(queue);
    await workflowIn(ids[0] as string, 'completed');
    await until(
      async () => (await server.ok(200, 'GET', `${WORKFLOWS}?state=completed`)).total === 1,
      'the end on the list',
    );
    const all = await server.ok(200, 'GET', WORKFLOWS);
    expect((all.workflows as Json[]).map(({ id, state }) => [id, state])).toEqual([
      [ids[2], 'running'],
      [ids[1], 'running'],
      [ids[0], 'completed'],
    ]);
    expect(all.items).toEqual(all.workflows);
    expect((all.workflows as Json[])[2]).toMatchObject({ type: 'chain', name: 'n0', step_count: 1, steps_total: 1 });
    const page = await server.ok(200, 'GET', `${WORKFLOWS}?page=2&per_page=2`);
    expect(page).toMatchObject({ total: 3, pagination: { total: 3, page: 2, per_page: 2, has_more: false } });
    expect((page.workflows as Json[]).map(({ id }) => id)).toEqual([ids[0]]);
    expect((await server.call('GET', `${WORKFLOWS}?state=odd`)).status).toBe(400);
  });

  it('is empty after a reset, and so is every workflow', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: steps(queue, 2) });
    await server.ok(200, 'POST', '/ojs/v1/admin/reset');
    expect(await server.ok(200, 'GET', WORKFLOWS)).toMatchObject({ workflows: [], total: 0 });
    expect((await server.call('GET', `${WORKFLOWS}/${id}`)).status).toBe(404);
    expect(await fetchJobs(queue)).toEqual([]);
  });
});

describe('the progress of a workflow', () => {
  it('counts completed jobs whole and others as far as they say', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: steps(queue, 4) });
    const jobs = (await fetchJobs(queue, 2)) as [Json, Json];
    await ack(jobs[0]);
    await server.ok(200, 'PUT', `/ojs/v1/jobs/${jobs[1].id}/progress`, { progress: 0.5 });
    await until(async () => (await workflow(id)).steps_completed === 1, 'the completed job');
    expect(await server.ok(200, 'GET', `${WORKFLOWS}/${id}/progress`)).toMatchObject({
      workflow_id: id,
      type: 'group',
      progress: 0.375,
      steps: [
        { id: '0', job_id: jobs[0].id, type: 'test.step', state: 'completed', progress: 1 },
        { id: '1', state: 'active', progress: 0.5 },
        { id: '2', state: 'available', progress: 0 },
        { id: '3', state: 'available', progress: 0 },
      ],
      updated_at: expect.any(String),
    });
  });
});

describe('events of a workflow', () => {
  it('tell of its start, each completed step and its end', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', name: 'told', steps: steps(queue, 2) });
    await work(queue);
    const last = await work(queue);
    await workflowIn(id, 'completed');
    const types = 'workflow.started,workflow.step_completed,workflow.completed,workflow.failed';
    const events = await until(async () => {
      const found = (await server.ok(200, 'GET', `/ojs/v1/events?queue=${queue}&types=${types}`)).events as Json[];
      return found.length === 4 && found;
    }, 'the events');
    expect(events.map(({ type, subject }) => [type, subject])).toEqual([
      ['workflow.started', id],
      ['workflow.step_completed', id],
      ['workflow.step_completed', id],
      ['workflow.completed', id],
    ]);
    expect(events[2]?.data).toMatchObject({ workflow_id: id, name: 'told', step: '1', job_id: last.id });
  });
});

describe('a workflow whose jobs are pushed', () => {
  it('runs through a handler Worker', async () => {
    const queue = freshQueue();
    const task = (value: unknown) => step(queue, { type: 'work.do', args: [{ value }] });
    const id = await begin({
      type: 'chain',
      steps: [task('a'), { type: 'group', jobs: [task('b'), task('c')] }, task('d')],
    });
    const ended = await workflowIn(id, 'completed');
    expect(await server.job(ended.steps[2]?.job_id as string)).toMatchObject({
      state: 'completed',
      result: 'd',
      workflow_id: id,
      parent_results: ['a', ['b', 'c']],
    });
  });
});
