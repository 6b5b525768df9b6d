/** What subscriptions must hear waits in a bounded number of rows, and costs the transaction that it tells of nothing. */
import { describe, expect, it } from 'vitest';
import { gatherNotices, MAX_MESSAGES } from '../../src/across/feed/notices';
import type { QueueEvent } from '../../src/durable/event-log';
import type { WebhookRoute } from '../../src/notifications/webhook/subscription';
import { clock, T0 } from '../support/clock';
import { TestQueue } from '../support/queue';

clock.startAtT0();

const route = (id: string): WebhookRoute => ({ id, events: ['*'] }) as unknown as WebhookRoute;

const event = (n: number): QueueEvent => ({
  id: `evt_${String(n).padStart(6, '0')}`,
  type: 'job.started',
  queue: 'q',
  subject: `job-${n}`,
  time: T0 + n,
  data: { attempt: 1 },
});

describe('events that a subscription must hear', () => {
  it('wait in a bounded number of letters where it cannot be reached: the oldest go', async () => {
    const queue = new TestQueue();
    await queue.add();
    await queue.inside(({ q }) => {
      for (let n = 0; n < MAX_MESSAGES + 20; n++) {
        gatherNotices(q.store.outbox, [route('slow')], [event(n)]);
        q.store.outbox.flush();
      }
      gatherNotices(q.store.outbox, [route('other')], [event(0)]);
      q.store.outbox.flush();
    });
    const letters = await queue.rows<{ n: number; oldest: string; newest: string }>(
      "SELECT count(*) AS n, min(data) AS oldest, max(data) AS newest FROM outbox WHERE kind = 'notice' GROUP BY address",
    );
    expect(letters.map(({ n }) => n)).toEqual([1, MAX_MESSAGES + 1]);
    expect(letters[1]?.oldest).toContain('job-19');
    expect(letters[1]?.newest).toContain(`job-${MAX_MESSAGES + 19}`);
  });

  it('are left out where they cannot be sent', async () => {
    const queue = new TestQueue();
    await queue.add();
    await queue.inside(({ q }) => {
      const endless: Record<string, unknown> = {};
      endless.self = endless;
      expect(() => gatherNotices(q.store.outbox, [route('w')], [{ ...event(1), data: endless }])).not.toThrow();
    });
  });
});
