import { describe, expect, it } from 'vitest';
import { type Answer, server } from '../../support/server';
import { post, postBatch } from './jobs';

server.emptyBeforeEach();

const unique = { key: 'one' };

const tally = (answers: Answer[]) => {
  const seen: Record<number, number> = {};
  for (const { status } of answers) seen[status] = (seen[status] ?? 0) + 1;
  return seen;
};

/** Hundreds of requests at once take a while where processors are few. */
const SLOW = 60_000;

describe('200 enqueues of one key over two queues at once', { timeout: SLOW }, () => {
  it('make one job, and refuse the others by its id', async () => {
    const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => post(n % 2 ? 'a' : 'b', unique)));
    expect(tally(answers)).toEqual({ 201: 1, 409: 199 });
    const id = answers.find(({ status }) => status === 201)?.body.id;
    for (const { status, body } of answers) {
      if (status === 409) expect(body.error?.details).toMatchObject({ existing_job_id: id });
    }
    const [a, b] = [await server.counts('a'), await server.counts('b')];
    expect((a.available as number) + (b.available as number)).toBe(1);
  });

  it('make one job that all of them are notified of, when duplicates are ignored', async () => {
    const ignore = { ...unique, on_conflict: 'ignore' };
    const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => post(n % 2 ? 'a' : 'b', ignore)));
    expect(tally(answers)).toEqual({ 201: 1, 200: 199 });
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  });

  it('leave one job that is not cancelled, when each replaces the one before', async () => {
    const replace = { ...unique, on_conflict: 'replace' };
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => post(n % 2 ? 'a' : 'b', replace)));
    expect(tally(answers)).toEqual({ 201: 20 });
    const [a, b] = [await server.counts('a'), await server.counts('b')];
    expect((a.available as number) + (b.available as number)).toBe(1);
    expect((a.cancelled as number) + (b.cancelled as number)).toBe(19);
  });
});

it('enqueues of one key in one queue, alone and in batches, make one job', { timeout: SLOW }, async () => {
  const own = { keys: ['type', 'queue'], on_conflict: 'ignore' };
  const entry = { type: 'sync.user', args: [], queue: 'a', unique: own };
  const answers = await Promise.all([
    ...Array.from({ length: 20 }, () => post('a', own)),
    ...Array.from({ length: 4 }, () => postBatch(...Array(5).fill(entry))),
  ]);
  const ids = answers.flatMap(({ body }) => (body.jobs ? body.jobs.map(({ id }) => id) : [body.id]));
  expect(ids).toHaveLength(40);
  expect(new Set(ids).size).toBe(1);
});
