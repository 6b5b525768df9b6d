import { describe, expect, it } from 'vitest';
import { deliveryOf, isWebhookId, readDeliveryId } from '../../../src/notifications/webhook/ids';
import { type Attempted, DELAYS_MS, verdictOn } from '../../../src/notifications/webhook/schedule';
import { isFor, type WebhookRoute } from '../../../src/notifications/webhook/subscription';

const HOUR = 3_600_000;

describe('what becomes of a delivery', () => {
  it.each<[string, Attempted, object]>([
    ['200', { status: 200 }, { state: 'delivered' }],
    ['204', { status: 204 }, { state: 'delivered' }],
    ['410', { status: 410 }, { state: 'failed', isGone: true }],
    ['400', { status: 400 }, { state: 'failed' }],
    ['404', { status: 404 }, { state: 'failed' }],
    ['a URL that may not be called', { refused: true }, { state: 'failed' }],
    ['429', { status: 429 }, { state: 'pending', delayMs: 30_000 }],
    ['429 with a longer pause', { status: 429, retryAfterMs: 90_000 }, { state: 'pending', delayMs: 90_000 }],
    ['429 with a shorter pause', { status: 429, retryAfterMs: 1 }, { state: 'pending', delayMs: 30_000 }],
    ['503 with a pause', { status: 503, retryAfterMs: 90_000 }, { state: 'pending', delayMs: 90_000 }],
    [
      '503 with a pause of a year',
      { status: 503, retryAfterMs: 365 * 24 * HOUR },
      { state: 'pending', delayMs: 24 * HOUR },
    ],
    ['500, whose pause does not count', { status: 500, retryAfterMs: 90_000 }, { state: 'pending', delayMs: 30_000 }],
    ['302', { status: 302 }, { state: 'pending', delayMs: 30_000 }],
    ['no answer', { error: 'refused' }, { state: 'pending', delayMs: 30_000 }],
  ])('follows from %s', (_, attempt, verdict) => {
    expect(verdictOn(attempt, 1, 0)).toEqual(verdict);
  });

  it('is another try after 30 s, 2 min, 10 min, 1 h, 4 h, 12 h and 24 h, a little later at random, and then none', () => {
    const pauses = (random: number) =>
      [1, 2, 3, 4, 5, 6, 7, 8].map((tries) => verdictOn({ status: 500 }, tries, random));
    expect(pauses(0)).toEqual([
      ...[30_000, 120_000, 600_000, HOUR, 4 * HOUR, 12 * HOUR, 24 * HOUR].map((delayMs) => ({
        state: 'pending',
        delayMs,
      })),
      { state: 'dead' },
    ]);
    expect(pauses(0.5)).toEqual([
      ...DELAYS_MS.map((ms) => ({ state: 'pending', delayMs: Math.round(ms * 1.1) })),
      { state: 'dead' },
    ]);
  });
});

describe('an event', () => {
  const route = (more: Partial<WebhookRoute>): WebhookRoute => ({ id: 'wh_1', events: ['*'], ...more });
  const event = (type: string, data = {}) => ({ type, queue: 'mail', data: { job_type: 'email.send', ...data } });

  it.each<[Partial<WebhookRoute>, string, boolean]>([
    [{}, 'job.completed', true],
    [{ events: ['job.*'] }, 'job.completed', true],
    [{ events: ['job.*'] }, 'queue.paused', false],
    [{ events: ['job.retried'] }, 'job.retrying', true],
    // They come again and again: only by their names.
    [{ events: ['*', 'job.*'] }, 'job.progress', false],
    [{ events: ['*', 'job.*'] }, 'job.log', false],
    [{ events: ['job.progress'] }, 'job.progress', true],
    [{}, 'job.state_changed', false],
    [{ queues: ['mail', 'sms'] }, 'job.completed', true],
    [{ queues: ['sms'] }, 'job.completed', false],
    [{ types: ['email.*'] }, 'job.completed', true],
    [{ types: ['email.send'] }, 'job.completed', true],
    [{ types: ['email.sen'] }, 'job.completed', false],
    [{ types: ['sms.*'] }, 'job.completed', false],
  ])('is for %o: %s: %s', (more, type, expected) => {
    expect(isFor(route(more), event(type))).toBe(expected);
  });

  it('that names its receiver is for that one alone', () => {
    const fired = event('alert.firing', { subscription_id: 'wh_1' });
    expect(isFor(route({ events: ['job.failed'], queues: ['sms'] }), fired)).toBe(true);
    expect(isFor(route({ id: 'wh_2' }), fired)).toBe(false);
  });

  it('without a job does not match subscriptions to job types', () => {
    expect(isFor(route({ types: ['email.*'] }), { type: 'queue.paused', queue: 'mail', data: {} })).toBe(false);
  });
});

describe('the id of a delivery', () => {
  const webhook = 'wh_0190a000-0000-7000-8000-000000000001';
  const event = 'evt_0190a000-0000-7000-8000-000000000002';

  it('names its subscription and its event', () => {
    expect(isWebhookId(webhook)).toBe(true);
    expect(readDeliveryId(deliveryOf(webhook, event))).toEqual({ webhook, event });
  });

  it.each(['', 'whd_', 'whd_1_2', webhook, `${deliveryOf(webhook, event)}_1`])('is not %s', (id) => {
    expect(readDeliveryId(id)).toBeUndefined();
  });
});
