/** Whatever way a job is discarded, its event says what it was, how long it ran and why it ended. */
import { describe, expect, it } from 'vitest';
import { clock, MINUTE, T0 } from '../../support/clock';
import { type JobChange, steady, TestQueue } from '../../support/queue';

clock.startAtT0();

const dies = (attempts = 1): JobChange => ({ retry: steady(attempts) });

/** The only event of a discard, or of an expiry. */
async function told(queue: TestQueue, type = 'job.discarded') {
  const events = await queue.api.events({ types: [type], limit: 10 });
  expect(events).toHaveLength(1);
  return events[0]?.data;
}

describe('the event of a discard tells duration and error of a job', () => {
  it.each<[string, (queue: TestQueue, id: string) => Promise<unknown>, object]>([
    [
      'that failed for good',
      async (queue, id) => {
        await queue.claim();
        clock.set(T0 + 40);
        await queue.nack(id, { code: 'broken', message: 'no' });
      },
      { attempt: 1, duration_ms: 40, error: { code: 'broken', message: 'no' } },
    ],
    [
      'whose lease ran out',
      async (queue) => {
        await queue.claim({ visibility_timeout_ms: MINUTE });
        clock.set(T0 + MINUTE);
        await queue.stats();
      },
      { attempt: 1, duration_ms: MINUTE, error: { code: 'visibility_timeout' } },
    ],
    [
      'whose worker was removed',
      async (queue) => {
        await queue.claim({ worker_id: 'w' });
        clock.set(T0 + 5);
        await queue.api.releaseLeased('w');
      },
      { attempt: 1, duration_ms: 5, error: { code: 'worker_lost' } },
    ],
    [
      'that was purged',
      (queue, id) => queue.api.operate({ id: 'op', action: 'purge', filter: { ids: [id] } }, 5_000),
      { attempt: 0, duration_ms: null, reason: 'purged', error: { code: 'purged', type: 'tocsin.purged' } },
    ],
    [
      'that made room for another',
      async (queue) => {
        await queue.api.configure({ max_depth: 1, overflow: 'drop_oldest' });
        await queue.add();
      },
      { attempt: 0, duration_ms: null, reason: 'queue_full', error: { code: 'queue_full', type: 'tocsin.queue_full' } },
    ],
    [
      'that cannot be read',
      async (queue) => {
        await queue.inside(({ sql, q }) => {
          sql.exec('UPDATE blocks SET data = replace(data, \'{"type"\', \'x"type"\')').toArray();
          q.load();
        });
        await queue.claim();
      },
      { duration_ms: null, dead_letter: true, error: { code: 'unreadable_record' } },
    ],
  ])('%s', async (_, discard, expected) => {
    const queue = new TestQueue();
    const id = await queue.add(dies());
    await discard(queue, id);
    expect(await told(queue)).toMatchObject({ job_type: 'test.job', ...expected });
  });

  it('that expired', async () => {
    const queue = new TestQueue();
    await queue.add({ expiresAt: T0 + 1 });
    clock.set(T0 + 1);
    await queue.stats();
    const error = { code: 'expired', type: 'tocsin.expired', message: 'The job expired before it ran.' };
    expect(await told(queue, 'job.expired')).toMatchObject({ duration_ms: null, reason: 'expired', error });
  });
});
