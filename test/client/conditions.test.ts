/** A condition that does not exist or has no value is refused before anything is sent: without it a call means more. */
import { describe, expect, it } from 'vitest';
import { InvalidJobError, TocsinClient } from '../../src/client';

const service = {
  async fetch(): Promise<Response> {
    throw new Error('nothing may be sent');
  },
};
const tocsin = new TocsinClient({ service });

async function first(list: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of list) return;
}

/** Every call that chooses many by conditions, with one that it has. */
const CALLS: [name: string, condition: string, call: (query: never) => Promise<unknown>][] = [
  ['list', 'type', (query) => first(tocsin.list(query))],
  ['count', 'type', (query) => tocsin.count(query)],
  ['jobs.page', 'type', (query) => tocsin.jobs.page(query)],
  ['jobs.summaries', 'type', (query) => first(tocsin.jobs.summaries(query))],
  ['bulk.cancel', 'olderThan', (query) => tocsin.bulk.cancel(query)],
  ['bulk.retry', 'olderThan', (query) => tocsin.bulk.retry(query)],
  ['bulk.delete', 'olderThan', (query) => tocsin.bulk.delete(query)],
  ['bulk.preview', 'olderThan', (query) => tocsin.bulk.preview('delete', query)],
  ['deadLetters.list', 'errorType', (query) => first(tocsin.deadLetters.list(query))],
  ['deadLetters.retryMany', 'errorType', (query) => tocsin.deadLetters.retryMany(query)],
  ['deadLetters.deleteMany', 'errorType', (query) => tocsin.deadLetters.deleteMany(query)],
  ['deadLetters.purge', 'queue', (query) => tocsin.deadLetters.purge('P30D', query)],
  ['failures.list', 'state', (query) => tocsin.failures.list(query)],
  ['failures.redrive', 'state', (query) => tocsin.failures.redrive('f', query)],
  ['failures.discard', 'state', (query) => tocsin.failures.discard('f', query)],
  ['queues.purge', 'olderThan', (query) => tocsin.queues.purge('q', ['completed'], query)],
  ['queues.delete', 'targetQueue', (query) => tocsin.queues.delete('q', query)],
  ['events.list', 'types', (query) => first(tocsin.events.list(query))],
  ['audit.list', 'action', (query) => first(tocsin.audit.list(query))],
  ['cron.list', 'group', (query) => first(tocsin.cron.list(query))],
  ['workflows.list', 'state', (query) => first(tocsin.workflows.list(query))],
  ['stats.history', 'queue', (query) => tocsin.stats.history(query)],
  ['webhooks.deliveries', 'status', (query) => first(tocsin.webhooks.deliveries(query))],
  ['targets.list', 'queues', (query) => tocsin.targets.list(query)],
  ['targets.resume', 'queues', (query) => tocsin.targets.resume('t', query)],
];

it.each([{}, { min: undefined }, { min: null }, { mni: 1 }])('a range that is %j is refused', async (priority) => {
  const query = { queue: 'q', priority } as never;
  for (const asked of [tocsin.count(query), first(tocsin.list(query))]) {
    await expect(asked).rejects.toThrow(InvalidJobError);
  }
});

it('a directive for a worker that is undefined is not sent to all', async () => {
  const workers = tocsin.workers as { direct(directive: string, id?: unknown): Promise<number> };
  for (const id of [undefined, null]) await expect(workers.direct('terminate', id)).rejects.toThrow(InvalidJobError);
});

it.each(['', '.', '..', '\ud83d', undefined, null])('a path does not name %j', async (name) => {
  const wrong = name as string;
  for (const asked of [tocsin.queues.pause(wrong), tocsin.queues.pauseGroup('q', wrong), tocsin.get(wrong)]) {
    await expect(asked).rejects.toThrow(InvalidJobError);
  }
});

describe.each(CALLS)('tocsin.%s', (_, condition, call) => {
  it.each([
    ['undefined', undefined],
    ['null', null],
    ['an empty list', []],
  ])(`refuses ${condition} that is %s`, async (__, value) => {
    const thrown = await call({ [condition]: value } as never).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(InvalidJobError);
    expect(thrown).toMatchObject({ details: { field: condition } });
  });

  it('refuses a condition that does not exist, and names those that do', async () => {
    const thrown = await call({ no_such_condition: 'x' } as never).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(InvalidJobError);
    expect((thrown as Error).message).toContain(condition);
  });
});
