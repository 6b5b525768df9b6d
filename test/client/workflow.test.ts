/** Workflows through the client: what is sent, when it is sent again, and that the server understands it. */
import { exports } from 'cloudflare:workers';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { InvalidJobError, TocsinClient, type Workflow } from '../../src/client';
import { fetchJobs, freshQueue, work } from '../workflow/workflows';
import { errorAnswer, fakeQueue } from './fake-queue';

type Jobs = { 'mail.send': [{ to: string }]; 'mail.report': [] };

const service = (exports as unknown as { default: { fetch(input: string): Promise<Response> } }).default;

const accepted = (id: unknown) => Response.json({ workflow: { id, state: 'running' } }, { status: 201 });
const job = { type: 'test.step', args: [] } as const;

describe('starting a workflow', () => {
  it('sends every form, in each other, as the server reads it', async () => {
    const { client, requests } = fakeQueue(({ body }) => accepted(body?.id));
    const { chain, group, batch, graph } = client.flow;
    const mail = { type: 'mail.send', args: [{ to: 'a' }], options: { queue: 'mail', delay: '5m' as const } };
    const whole = chain(
      mail,
      group(job, chain(job)),
      batch([job], { onComplete: job, onFailure: mail }),
      graph({ a: { step: job }, b: { step: group(job), after: ['a'] } }),
    );
    const started = await client.workflows.start(whole, { name: 'all', jobOptions: { queue: 'other' } });
    const plain = { type: 'test.step', args: [], options: {} };
    const wired = { type: 'mail.send', args: [{ to: 'a' }], options: { queue: 'mail', delay_until: '5m' } };
    expect(requests).toMatchObject([{ method: 'POST', path: '/workflows' }]);
    expect(requests[0]?.body).toEqual({
      id: started.id,
      name: 'all',
      options: { queue: 'other' },
      type: 'chain',
      steps: [
        wired,
        { type: 'group', jobs: [plain, { type: 'chain', steps: [plain] }] },
        { type: 'batch', jobs: [plain], callbacks: { on_complete: plain, on_failure: wired } },
        {
          steps: [
            { id: 'a', depends_on: [], ...plain },
            { id: 'b', depends_on: ['a'], type: 'group', jobs: [plain] },
          ],
        },
      ],
    });
  });

  it('is repeated under the same id when there was no answer, and takes what the first try has made', async () => {
    const { client, requests } = fakeQueue(({ method, body, path }, index) => {
      if (index === 0) throw new Error('connection lost');
      if (method === 'GET') return Response.json({ workflow: { id: path.split('/')[2], state: 'completed' } });
      return errorAnswer(409, 'duplicate', { existing_workflow_id: body?.id });
    });
    const started = await client.workflows.start(client.flow.chain(job));
    expect(started.state).toBe('completed');
    expect(requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'GET']);
    expect(requests[1]?.body).toEqual(requests[0]?.body);
    expect(started.id).toBe(requests[0]?.body?.id);
  });

  it('reports an id that another workflow has', async () => {
    const { client } = fakeQueue(({ body }) => errorAnswer(409, 'duplicate', { existing_workflow_id: body?.id }));
    await expect(client.workflows.start(client.flow.chain(job), { id: 'x' })).rejects.toMatchObject({ status: 409 });
  });

  it('refuses what cannot be sent, and sends nothing', async () => {
    const { client, requests } = fakeQueue();
    const { chain } = client.flow;
    // @ts-expect-error the server chooses the ids
    const named = chain({ ...job, options: { id: '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee' } });
    await expect(client.workflows.start(named)).rejects.toThrow(InvalidJobError);
    await expect(client.workflows.start(chain({ type: 'a', args: [1n] }))).rejects.toThrow(InvalidJobError);
    expect(requests).toEqual([]);
  });

  it('knows which jobs there are, and their arguments', () => {
    const { flow } = new TocsinClient<Jobs>({ service });
    type Accepted = Parameters<typeof flow.chain>[number];
    expectTypeOf<{ type: 'mail.send'; args: [{ to: string }] }>().toExtend<Accepted>();
    expectTypeOf<{ type: 'mail.send'; args: [number] }>().not.toExtend<Accepted>();
    expectTypeOf<{ type: 'mail.sent'; args: [] }>().not.toExtend<Accepted>();
    expectTypeOf(flow.group({ type: 'mail.report', args: [] })).toExtend<Workflow>();
  });
});

describe('cancelling a workflow', () => {
  it('is done when an earlier try without an answer did it', async () => {
    const { client } = fakeQueue(({ method }, index) => {
      if (index === 0) throw new Error('connection lost');
      if (method === 'GET') return Response.json({ workflow: { id: 'w', state: 'cancelled' } });
      return errorAnswer(409, 'conflict', { current_state: 'cancelled' });
    });
    expect(await client.workflows.cancel('w')).toMatchObject({ state: 'cancelled' });
  });

  it('is refused when it has ended otherwise', async () => {
    const { client } = fakeQueue(() => errorAnswer(409, 'conflict', { current_state: 'completed' }));
    await expect(client.workflows.cancel('w')).rejects.toMatchObject({ status: 409 });
  });
});

describe('the server', () => {
  it('takes a workflow of the client, shows it, and cancels it', async () => {
    const client = new TocsinClient({ service });
    const { chain, group, graph } = client.flow;
    const queue = freshQueue();
    const whole = chain(job, group(job, job), graph({ a: { step: job }, b: { step: job, after: ['a'] } }));
    const { id } = await client.workflows.start(whole, { name: 'real', jobOptions: { queue } });
    await work(queue, 1);
    const shown = await client.workflows.get(id);
    expect(shown).toMatchObject({ id, type: 'chain', name: 'real', state: 'running', stepsTotal: 3 });
    expect(shown.steps[2]?.steps?.map((step) => [step.id, step.dependsOn])).toEqual([
      ['a', []],
      ['b', ['a']],
    ]);
    expect(await client.workflows.cancel(id)).toMatchObject({ id, state: 'cancelled' });
    expect(await fetchJobs(queue)).toEqual([]);
  });
});
