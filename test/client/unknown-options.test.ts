/** Options that do not exist are refused before anything is sent, also those that the compiler does not see. */
import { expect, it } from 'vitest';
import { runWorker, type TocsinClient } from '../../src/client';
import { fakeQueue } from './fake-queue';

const job = (rest: object = {}) => ({ type: 'a', args: [], ...rest });
const wrong = { prioritty: 5 };
const noOption = 'The job a has no option "prioritty"; there are queue, priority, ';

it.each<[string, (client: TocsinClient) => Promise<unknown>, string]>([
  ['an enqueue', (client) => client.enqueue('a', [], wrong as object), noOption],
  [
    'the name on the wire',
    (client) => client.enqueue('a', [], { max_attempts: 1 } as object),
    'has no option "max_attempts"',
  ],
  ['jobs of a batch', (client) => client.enqueueMany([job(), job({ options: wrong })]), noOption],
  ['jobs each on its own', (client) => client.enqueueEach([job({ options: wrong })]), noOption],
  ['a key in a batch', (client) => client.enqueueMany([job({ options: { idempotencyKey: 'k' } })]), '"idempotencyKey"'],
  [
    'beside the options',
    (client) => client.enqueueMany([job({ priority: 1 })]),
    'Besides its options, the job a has no "priority"; there are type, args, options',
  ],
  ['a change', (client) => client.jobs.patch('id', wrong as object), 'A change of a job has no "prioritty"'],
  ['a schedule', (client) => client.cron.put({ ...cron(), jitter: '5m' } as never), 'A schedule has no "jitter"'],
  ['its job', (client) => client.cron.put({ ...cron(), job: job({ options: wrong }) }), noOption],
  ['its change', (client) => client.cron.patch('x', { jitter: '5m' } as object), 'A schedule has no "jitter"'],
  [
    'a group',
    (client) => client.cronGroups.put('g', [{ ...cron(), jitter: 1 } as never]),
    'A schedule has no "jitter"',
  ],
  ['a step', ({ workflows, flow }) => workflows.start(flow.chain(job({ options: wrong }))), noOption],
  [
    'beside a step',
    ({ workflows, flow }) => workflows.start(flow.group(job({ queue: 'a' }))),
    'Besides its options, the job a has no "queue"',
  ],
  [
    'a step of a graph',
    ({ workflows, flow }) => workflows.start(flow.graph({ b: { step: job(), dependsOn: [] } as never })),
    'The step b has no "dependsOn"; there are step, after',
  ],
  [
    'a workflow',
    ({ workflows, flow }) => workflows.start(flow.group(job()), { nmae: 'a' } as object),
    'A workflow has no option "nmae"; there are name, id, jobOptions',
  ],
])('%s with an unknown option is a TypeError, and nothing is sent', async (_, call, message) => {
  const { client, requests } = fakeQueue();
  const refused = await call(client).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(TypeError);
  expect((refused as Error).message).toContain(message);
  expect(requests).toEqual([]);
});

it('unknown options of a client and of a worker are refused, too', async () => {
  expect(() => fakeQueue(undefined, { timeout: 1 } as object)).toThrow('TocsinClient has no option "timeout"');
  const { client } = fakeQueue();
  const worker = client.worker('w', { queues: ['q'] });
  const running = worker.run({ 'a.b': () => 1 }, { signal: AbortSignal.abort(), concurency: 5 } as never);
  await expect(running).rejects.toThrow('worker.run has no option "concurency"; there are signal, concurrency, ');
  const all = { url: 'http://localhost', queues: ['q'], signal: AbortSignal.abort(), concurency: 5 } as never;
  await expect(runWorker({ 'a.b': () => 1 }, all)).rejects.toThrow('runWorker has no option "concurency"');
});

const cron = () => ({ name: 'x', expression: '@daily', job: job() });

it('a member that is undefined counts as absent', async () => {
  const { client, requests } = fakeQueue();
  await client.enqueue('a', [], { prioritty: undefined } as object);
  expect(requests).toHaveLength(1);
});
