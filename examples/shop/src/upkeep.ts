/** The shop's upkeep: schedules, an index that follows changes, and a way to stop payments. */
import type { CronGroupResult, Job, RateLimitStatus } from '../../../src/client';
import { PAYMENTS, type Shop } from './jobs';

/** Declares settings and schedules. Call it at every deploy: it changes only what differs. */
export async function setUp(tocsin: Shop): Promise<CronGroupResult> {
  await tocsin.queues.configure('mail', {
    allowedJobTypes: ['mail.*'],
    maxSize: 100_000,
    retention: { completed: '1d' },
  });
  const options = { queue: 'reports', maxAttempts: 5 };
  return await tocsin.cronGroups.put(
    'shop',
    [
      {
        name: 'sales-report',
        expression: '0 6 * * MON-FRI',
        job: { type: 'report.build', args: [{ of: 'sales' }], options },
      },
      {
        name: 'stock-report',
        expression: '@every 6h',
        overlapPolicy: 'cancel_previous',
        job: { type: 'report.build', args: [{ of: 'stock' }], options },
      },
    ],
    { timezone: 'Europe/Paris' },
  );
}

/** Indexes the catalogue a second after the last of many changes. */
export async function catalogueChanged(tocsin: Shop): Promise<Job> {
  return await tocsin.enqueue('catalogue.index', [], {
    queue: 'catalogue',
    delay: '1s',
    unique: { keys: ['type', 'queue'], uniqueWhile: 'queued', onConflict: 'replace' },
  });
}

/**
 * Starts no charges for a while; waiting ones keep their order.
 * @throws {NotFoundError} when no charge was made lately
 */
export async function stopPayments(tocsin: Shop, minutes: number): Promise<RateLimitStatus> {
  return await tocsin.rateLimits.override(PAYMENTS, { concurrency: 0, expiresAt: `+PT${minutes}M` });
}

/** Lets charges start again. */
export async function startPayments(tocsin: Shop): Promise<void> {
  await tocsin.rateLimits.removeOverride(PAYMENTS);
}
