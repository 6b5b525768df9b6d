/** What handlers register for their types holds for jobs that are enqueued by whoever knows these handlers. */
import { describe, expect, it } from 'vitest';
import { defineHandlers, type HandlerContext } from '../../src/handler';
import { readOptions } from '../../src/library/options';
import { runHandler } from '../../src/testing';
import { fakeQueue, type SentRequest } from './fake-queue';

const defaults = { queue: 'mail', priority: 5, tags: ['x'], unique: { keys: ['args'] }, delay: '10s' } as const;
const handlers = defineHandlers({
  'email.send': { handler: () => undefined, defaults },
  'sum.add': () => undefined,
  'parent.run': (_job, ctx: HandlerContext) => ctx.enqueue('email.send', ['a'], { priority: 1 }),
});
const known = (script?: (request: SentRequest) => Response) => fakeQueue(script, { handlers });

const WIRE = { queue: 'mail', priority: 5, tags: ['x'], unique: { keys: ['args'] }, delay_until: '10s' };

describe('the defaults of a type', () => {
  it('hold for its jobs, one by one and many at once, and for no others', async () => {
    const { client, requests } = known();
    await client.enqueue('email.send', []);
    await client.enqueue('sum.add', []);
    await client.enqueueMany([{ type: 'email.send', args: [] }]);
    const [alone, other, batch] = requests.map(({ body }) => body);
    expect(alone).toMatchObject({ options: WIRE });
    expect(other?.options).toEqual({});
    expect(batch).toMatchObject({ jobs: [{ options: WIRE }] });
  });

  it('stand back for what the enqueue says itself', async () => {
    const { client, requests } = known();
    await client.enqueue('email.send', [], { queue: 'bulk', tags: [], delayUntil: '2030-01-01T00:00:00Z' });
    const options = { ...WIRE, queue: 'bulk', tags: [], delay_until: '2030-01-01T00:00:00Z' };
    expect(requests[0]?.body?.options).toEqual(options);
  });

  it('are unknown to a client without the handlers', async () => {
    const { client, requests } = fakeQueue();
    await client.enqueue('email.send', []);
    expect(requests[0]?.body?.options).toEqual({});
  });

  it('hold for jobs of schedules, declared or put', async () => {
    const { client, requests } = known(() => Response.json({ cron: {} }));
    const entry = { expression: '@daily', job: { type: 'email.send', args: [] } };
    await client.cron.put({ name: 'a', ...entry }).catch(() => undefined);
    expect(requests[0]?.body).toMatchObject({ job_template: { options: WIRE } });
    expect(readOptions({ handlers, crons: { a: entry } }).crons.a).toMatchObject({ job_template: { options: WIRE } });
  });

  it('hold for jobs of workflows below the options of the workflow, but for the unique policy', async () => {
    const { client, requests } = known(() => Response.json({ workflow: {} }));
    const { flow } = client;
    const steps = flow.chain({ type: 'email.send', args: [], options: { priority: 1 } });
    await client.workflows.start(steps, { jobOptions: { queue: 'flow', delay: '1h' } }).catch(() => undefined);
    const sent = requests[0]?.body as { options: object; steps: { options: object }[] };
    expect(sent.options).toMatchObject({ queue: 'flow' });
    expect(sent.steps[0]?.options).toEqual({ priority: 1, tags: ['x'] });
  });

  it('hold for jobs that its fellow handlers enqueue', async () => {
    const { enqueued } = await runHandler(handlers, 'parent.run', []);
    expect(enqueued).toMatchObject([{ type: 'email.send', options: { queue: 'mail', priority: 1, tags: ['x'] } }]);
  });

  it.each<[string, object, RegExp]>([
    ['of another name', { maxAttempts: 1 }, /no default "maxAttempts"; there are queue, priority, tags, unique, delay/],
    ['a queue that is none', { queue: 1 }, /a name as its queue/],
    ['a priority out of range', { priority: 101 }, /-100 to 100 as priority/],
    ['tags that are none', { tags: 'x' }, /a list of strings as its tags/],
    ['a delay that is none', { delay: 'soon' }, /delay of "a.b"/],
  ])('are checked when the module loads: %s', (_, wrong, message) => {
    expect(() => defineHandlers({ 'a.b': { handler: () => 1, defaults: wrong as never } })).toThrow(message);
  });

  it('are taken only from what defineHandlers returned', () => {
    expect(() => fakeQueue(undefined, { handlers: { 'a.b': () => 1 } as never })).toThrow(
      /what defineHandlers returned/,
    );
  });
});
