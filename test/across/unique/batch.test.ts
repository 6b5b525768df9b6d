import { describe, expect, it } from 'vitest';
import { server } from '../../support/server';
import { enqueued, entry, post, postBatch, refusedFor, SCOPES } from './jobs';

server.emptyBeforeEach();

const plain = (queue: string) => entry(queue, undefined, { type: 'plain' });

describe.each(SCOPES)('in a batch, a job that is unique %s', (_, keys, other) => {
  // With and without a second queue in the batch: one transaction, or prepare and decide.
  describe.each([
    ['alone', 'a'],
    ['beside another queue', 'z'],
  ])('%s', (__, companion) => {
    it('refuses the batch whole, naming the entry', async () => {
      const id = await enqueued('a', { keys });
      const answer = await postBatch(plain(companion), plain(companion), entry(other, { keys }));
      expect(answer).toMatchObject(refusedFor(id));
      expect(answer.body.error?.details).toMatchObject({ index: 2 });
      expect(await server.counts(companion)).toMatchObject({ available: companion === 'a' ? 1 : 0 });
    });

    it('ignored stands for the existing job', async () => {
      const id = await enqueued('a', { keys });
      const answer = await postBatch(plain(companion), entry(other, { keys, on_conflict: 'ignore' }));
      expect(answer).toMatchObject({ status: 201, body: { enqueued: 1, deduplicated: 1, failed: 0 } });
      expect(answer.body.jobs).toMatchObject([{ type: 'plain' }, { id, deduplicated: true }]);
    });

    it('replacing cancels the existing job', async () => {
      const id = await enqueued('a', { keys });
      const { body } = await postBatch(plain(companion), entry(other, { keys, on_conflict: 'replace' }));
      expect(await server.job(id)).toMatchObject({ state: 'cancelled' });
      const now = body.jobs?.[1];
      expect(await server.job(now?.id)).toMatchObject({ state: 'available', queue: other });
      expect(await post('a', { keys })).toMatchObject(refusedFor(now?.id));
    });

    it('does nothing to the existing job when another entry is refused', async () => {
      const id = await enqueued('a', { keys });
      const stopper = { keys: ['queue'] };
      await enqueued(companion, stopper, { type: 'stopper' });
      const answer = await postBatch(
        entry(other, { keys, on_conflict: 'replace' }),
        entry(companion, stopper, { type: 'stopper' }),
      );
      expect(answer).toMatchObject({ status: 409, body: { error: { details: { index: 1 } } } });
      expect(await server.job(id)).toMatchObject({ state: 'available' });
    });

    it('is refused for an earlier entry', async () => {
      const answer = await postBatch(plain(companion), entry('a', { keys }), entry(other, { keys }));
      expect(answer).toMatchObject({
        status: 409,
        body: { error: { code: 'duplicate', details: { index: 2, existing_job_state: 'available' } } },
      });
      await enqueued('a', { keys });
    });

    it('ignored stands for an earlier entry', async () => {
      const ignore = { keys, on_conflict: 'ignore' };
      const { body } = await postBatch(plain(companion), entry('a', ignore), entry(other, ignore), entry('a', ignore));
      const id = body.jobs?.[1]?.id;
      expect(body).toMatchObject({ enqueued: 2, deduplicated: 2 });
      expect(body.jobs?.slice(2)).toMatchObject([
        { id, deduplicated: true },
        { id, deduplicated: true },
      ]);
    });

    it('replaces an earlier entry', async () => {
      const replace = { keys, on_conflict: 'replace' };
      const { body } = await postBatch(plain(companion), entry('a', replace), entry(other, replace));
      expect(body.jobs).toMatchObject([{ state: 'available' }, { state: 'cancelled' }, { state: 'available' }]);
      for (const job of body.jobs ?? []) expect(await server.job(job.id)).toMatchObject({ state: job.state });
      expect(await post(other, { keys })).toMatchObject(refusedFor(body.jobs?.[2]?.id));
    });
  });
});

it('a batch that was refused leaves no fingerprint behind', async () => {
  const one = { keys: ['type', 'queue'] };
  await enqueued('b', one);
  expect((await postBatch(entry('a', one), entry('b', one))).status).toBe(409);
  await enqueued('a', one);
});

it('batches that meet in the queues they hold are decided one after the other', async () => {
  const unique = { keys: ['type', 'queue'], on_conflict: 'ignore' };
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, n) => postBatch(...(n % 2 ? ['a', 'b'] : ['b', 'a']).map((q) => entry(q, unique)))),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(201));
  for (const queue of ['a', 'b']) expect(await server.counts(queue)).toMatchObject({ available: 1 });
});

it('two batches that cross each other do not wait for ever: every fingerprint ends up with one job', async () => {
  const ignore = (key: string) => ({ key, on_conflict: 'ignore' });
  const batches = Array.from({ length: 10 }, (_, n) => {
    const entries = ['one', 'two', 'three'].map((key, at) => entry(`q${(n + at) % 3}`, ignore(key)));
    return postBatch(...(n % 2 ? entries.reverse() : entries));
  });
  const answers = await Promise.all(batches);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
  const ids = new Set(answers.flatMap(({ body }) => body.jobs?.map(({ id }) => id)));
  expect(ids.size).toBe(3);
});
