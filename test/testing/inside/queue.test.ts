/** The queues of a Worker in a test: their clock, their rest, and what is expected of them. */
import { exports } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import type { JobsOf } from '../../../src/library';
import { testQueue } from '../../../src/testing/vitest';
import type { handlers } from './worker';

const START = Date.UTC(2040, 0, 1);
const SECOND = 1_000;
const HOUR = 3_600_000;

const queue = testQueue<JobsOf<typeof handlers>>();

const messageOf = async (expectation: Promise<void>): Promise<string> => {
  const error = await expectation.then(
    () => undefined,
    (thrown) => thrown as Error,
  );
  return error?.message ?? 'it holds';
};

it('declared settings exist from the start, except those that would send to a real receiver', async () => {
  const { cron, webhooks, alerts } = queue.client;
  const found: string[] = [];
  for await (const { name } of cron.list()) found.push(name);
  for await (const { id } of webhooks.list()) found.push(id);
  for await (const { name } of alerts.list()) found.push(name);
  expect(found).toEqual(['daily']);
});

describe('the clock', () => {
  it('stands still until the test moves it', async () => {
    const { id } = await queue.enqueue('note.write', ['now'], { delay: '1s' });
    expect(queue.now).toBe(START);
    expect(Date.now()).toBe(START);
    await queue.idle();
    expect(await queue.job(id)).toMatchObject({ state: 'scheduled' });
    await queue.advance(999);
    expect(await queue.job(id)).toMatchObject({ state: 'scheduled' });
    await queue.advance(1);
    expect(await queue.job(id)).toMatchObject({ state: 'completed', result: { at: START + SECOND } });
  });

  it('lets things happen in the order of time, and each ends before the next', async () => {
    await queue.enqueue('note.write', ['third'], { delay: '3h', queue: 'b' });
    await queue.enqueue('note.slow', [30], { delay: '2h', queue: 'a' });
    await queue.enqueue('note.write', ['first'], { delay: '1h', queue: 'c' });
    await queue.advance('1d');
    const resultIn = async (name: string) => (await queue.named(name).jobs()).map(({ result }) => result);
    expect(await resultIn('c')).toEqual([{ text: 'first', at: START + HOUR }]);
    expect(await resultIn('a')).toEqual([START + 2 * HOUR]);
    expect(await resultIn('b')).toEqual([{ text: 'third', at: START + 3 * HOUR }]);
    expect(queue.now).toBe(START + 24 * HOUR);
  });

  it('starts a call of many jobs when it is full, or its time has come', async () => {
    const add = (text: string) => queue.enqueue('note.bundle', [text]);
    const first = [await add('a'), await add('b')];
    await queue.idle();
    for (const { id } of first) expect(await queue.job(id)).toMatchObject({ state: 'available' });
    first.push(await add('c'));
    await queue.idle();
    for (const { id } of first) expect(await queue.job(id)).toMatchObject({ result: { together: 3 } });
    const { id } = await add('d');
    await queue.advance('1m');
    expect(await queue.job(id)).toMatchObject({ state: 'completed', result: { text: 'd', together: 1 } });
  });

  it('brings retries, one after the other', async () => {
    const { id } = await queue.enqueue('note.fail', ['x'], { maxAttempts: 3 });
    await queue.idle();
    expect(await queue.job(id)).toMatchObject({ state: 'retryable', attempt: 1 });
    await queue.advance('90s');
    expect(await queue.job(id)).toMatchObject({ state: 'retryable', attempt: 2 });
    await queue.advance('1h');
    expect(await queue.job(id)).toMatchObject({ state: 'discarded', attempt: 3 });
  });

  it('fires what the code declares, in every test again', async () => {
    for (const day of [1, 2]) {
      await queue.advance('1d');
      expect(await queue.named('cron').jobs({ state: 'completed' })).toHaveLength(day);
    }
    await queue.reset();
    expect(queue.now).toBe(START);
    await queue.advance('1d');
    expect(await queue.named('cron').jobs()).toHaveLength(1);
  });

  it('goes one way', async () => {
    await expect(queue.advanceTo(START - 1)).rejects.toThrow('this time has passed');
    await queue.advanceTo('2040-01-02T00:00:00Z');
    expect(queue.now).toBe(START + 24 * HOUR);
    await expect(queue.advance('an hour' as '1h')).rejects.toThrow('is not a duration');
  });

  it('must be ahead of real time', () => {
    expect(() => testQueue({ now: '2020-01-01T00:00:00Z' })).toThrow('at least a day ahead');
    expect(() => testQueue({ now: 'tomorrow' })).toThrow('is not a time');
  });
});

describe('rest', () => {
  it('comes when all that is due has run, one at a time if need be', async () => {
    const narrow = queue.named('narrow');
    await narrow.enqueueMany(Array.from({ length: 4 }, () => ({ type: 'note.slow' as const, args: [5] as [number] })));
    await queue.idle();
    expect(await narrow.jobs({ state: 'completed' })).toHaveLength(4);
  });

  it('includes what jobs enqueue, but nothing that is due later', async () => {
    await queue.enqueue('chain.next', [3, 0]);
    await queue.idle();
    expect(await queue.jobs({ state: 'completed' })).toHaveLength(4);
    await queue.enqueue('chain.next', [1, HOUR], { queue: 'later' });
    await queue.idle();
    expect(await queue.jobs({ state: 'scheduled' })).toHaveLength(1);
  });

  it('includes jobs that handlers wait for', async () => {
    const { id } = await queue.enqueue('note.sum', [['a', 'b']]);
    await queue.idle();
    expect(await queue.job(id)).toMatchObject({ state: 'scheduled' });
    await queue.advance('1h');
    const result = { texts: ['a', 'b'], at: START + HOUR };
    expect(await queue.job(id)).toMatchObject({ state: 'completed', attempt: 1, result });
  });

  it('includes workflows', async () => {
    const { chain } = queue.client.flow;
    const { id } = await queue.client.workflows.start(
      chain({ type: 'note.write', args: ['one'] }, { type: 'note.slow', args: [5], options: { delay: '1h' } }),
    );
    await queue.advance('1h');
    expect(await queue.client.workflows.get(id)).toMatchObject({ state: 'completed' });
  });
});

describe('a clock of a part of the tests', () => {
  const later = testQueue({ now: '2041-01-01T00:00:00Z' });

  it('begins where this part says, for all', async () => {
    expect([queue.now, later.now]).toEqual([Date.UTC(2041, 0, 1), Date.UTC(2041, 0, 1)]);
    await queue.enqueue('note.slow', [30]);
    await queue.idle();
    await expect(later).toHaveCompleted('note.slow');
  });
});

describe('a Worker under test', () => {
  it('enqueues by its own routes', async () => {
    await exports.default.fetch('http://localhost/');
    await expect(queue).toHaveEnqueued('note.write', ['by the route']);
  });

  it('begins each test with empty queues', async () => {
    expect(await queue.jobs()).toEqual([]);
    await expect(queue).not.toHaveEnqueued('note.write');
  });
});

describe('expectations', () => {
  it('are of type, arguments and any other member', async () => {
    await queue.named('mail').enqueue('note.write', ['a text'], { priority: 5, tags: ['vip'] });
    await queue.enqueue('note.write', ['another']);
    await expect(queue).toHaveEnqueued('note.write');
    await expect(queue).toHaveEnqueued('note.write', ['a text']);
    await expect(queue).toHaveEnqueued('note.write', [expect.stringContaining('oth')]);
    await expect(queue).toHaveEnqueued('note.write', undefined, { queue: 'mail', priority: 5, tags: ['vip'] });
    await expect(queue).not.toHaveEnqueued('note.write', ['a'], { queue: 'mail' });
    await expect(queue).not.toHaveEnqueued('note.write', ['another'], { queue: 'mail' });
    await expect(queue.named('mail')).not.toHaveEnqueued('note.write', ['another']);
  });

  it('are of the end, too', async () => {
    await queue.enqueue('note.write', ['a text'], { delay: '1h' });
    await expect(queue).not.toHaveCompleted('note.write');
    await queue.advance('1h');
    await expect(queue).toHaveCompleted('note.write', ['a text'], { result: { text: 'a text' } });
  });

  it('say what there is instead', async () => {
    expect(await messageOf(expect(queue).toHaveEnqueued('note.write'))).toContain('Nothing was enqueued.');
    await queue.named('mail').enqueue('note.write', ['a text']);
    await queue.named('mail').enqueue('note.fail', ['x'], { maxAttempts: 1 });
    await queue.idle();
    expect(await messageOf(expect(queue).toHaveCompleted('note.write', ['b'], { queue: 'mail' }))).toBe(
      [
        'expected the queue to have completed "note.write" ["b"] {"queue": "mail", "state": "completed"}',
        '',
        'Enqueued were:',
        '  note.write ["a text"] in mail, completed',
        '  note.fail ["x"] in mail, discarded: no paper',
      ].join('\n'),
    );
    const negated = await messageOf(expect(queue.named('mail')).not.toHaveEnqueued('note.fail'));
    expect(negated).toContain('expected queue mail not to have "note.fail"');
    expect(await messageOf(expect({}).toHaveEnqueued('note.fail'))).toContain('this expects what testQueue returned');
  });
});
