/** Failures in groups, and looking before acting on many, against the queue itself. */
import { beforeEach, describe, expect, it } from 'vitest';
import { NotFoundError } from '../../src/client';
import { freshName } from '../support/queue';
import { server } from '../support/server';
import { liveClient } from './live-client';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('groups');
});

async function failed(message: string, name = queue): Promise<string> {
  const id = await server.enqueue(name, { options: { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } } });
  await server.take(name, { count: 1 });
  await server.nack(id, { error: { type: 'SmtpError', message } });
  return id;
}

describe('failures in groups', () => {
  it('are listed, read, redriven and discarded', async () => {
    const tocsin = liveClient();
    const ids = [await failed('box 1 full'), await failed('box 2 full')];
    const { items, total, more } = await tocsin.failures.list({ queue, since: '1h', state: ['dead', 'retrying'] });
    expect({ total, more }).toEqual({ total: 1, more: false });
    const [group] = items;
    expect(group).toMatchObject({
      count: 2,
      queues: [queue],
      sample: { jobId: ids[1] },
      error: { message: 'box <n> full' },
    });
    const fingerprint = group?.fingerprint as string;
    expect(await tocsin.failures.get(fingerprint)).toEqual(expect.objectContaining(group));
    const found = [];
    for await (const job of tocsin.list({ fingerprint, q: 'full' })) found.push(job.id);
    expect(new Set(found)).toEqual(new Set(ids));
    expect(await tocsin.bulk.preview('retry', { fingerprint, error: 'smtperror' })).toMatchObject({
      ...{ matched: 2, matchedIsExact: true, byState: { discarded: 2 }, byQueue: { [queue]: 2 } },
    });
    expect(await tocsin.failures.redrive(fingerprint, { queue })).toMatchObject({ completed: true, succeeded: 2 });
    await expect(tocsin.failures.get(fingerprint)).rejects.toThrow(NotFoundError);
    await failed('box 3 full', freshName('groups'));
    const gone = await tocsin.failures.discard(fingerprint, {}, { idempotencyKey: 'once' });
    expect(gone).toMatchObject({ matched: 1, succeeded: 1 });
    expect(await tocsin.failures.list({ queue })).toMatchObject({ items: [] });
  });

  it('an operation is stopped once only, and says so', async () => {
    const tocsin = liveClient();
    await server.enqueue(queue);
    const { operationId } = await tocsin.bulk.cancel({ queue });
    const ended = await tocsin.bulk.abort(operationId as string);
    expect(ended).toMatchObject({ completed: true, succeeded: 1 });
    expect(ended).not.toHaveProperty('aborted');
    await expect(tocsin.bulk.abort('01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee')).rejects.toThrow(NotFoundError);
  });
});
