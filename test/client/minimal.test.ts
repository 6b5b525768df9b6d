/** What `enqueue` answers has the job's options, whether the server sent them back or the client kept them. */
import { expect, it } from 'vitest';
import type { EnqueueOptions } from '../../src/client';
import { freshName } from '../support/queue';
import { liveClient } from './live-client';

/** Every option that an envelope shows. */
const OPTIONS = {
  priority: 5,
  tags: ['a', 'b'],
  meta: { tenant: 'x' },
  timeoutMs: 5_000,
  visibilityTimeoutMs: 60_000,
  expiresAt: '2100-01-01T00:00:00+02:00',
  retry: { maxAttempts: 7, initialInterval: '2s', jitter: { kind: 'symmetric', amount: '1s' } },
  retention: { completed: '1h', deadLetter: 0 },
  unique: { keys: ['type', 'args'], onConflict: 'reject', period: '1h' },
  rateLimit: { key: 'minimal', rate: 2, period: '30s' },
  version: 3,
} satisfies EnqueueOptions;

it('an enqueue that accumulates gives the job that it has become a part of', async () => {
  const options = { queue: freshName(), delay: '1h', unique: { key: 'cart', onConflict: 'accumulate' } } as const;
  for (const client of [liveClient(), liveClient({ safeRetries: true })]) {
    const queue = freshName();
    const first = await client.enqueue('cart.index', [1], { ...options, queue });
    const second = await client.enqueue('cart.index', [2], { ...options, queue });
    expect(second).toMatchObject({ id: first.id, accumulated: true, coalesced: { calls: 2 }, state: 'scheduled' });
    expect(await client.jobs.get(first.id)).toMatchObject({ args: [1, 2], coalesced: { calls: 2 } });
  }
});

it('a minimal answer gives the same job as a full one', async () => {
  const queue = freshName();
  const client = liveClient();
  for (const options of [{}, OPTIONS, { delay: '1h', expiresAt: Date.now() + 7_200_000 }] satisfies EnqueueOptions[]) {
    const job = await client.enqueue('mail.send', [{ to: 1 }], { ...options, queue });
    const { retryEffective, waitingFor, ...shown } = await client.jobs.get(job.id);
    expect(job).toEqual(shown);
  }
});
