/** What `createTocsin` refuses, so that a mistake stops the deploy. */
import { describe, expect, it } from 'vitest';
import { defineHandlers } from '../../src/handler';
import { createTocsin } from '../../src/library';
import { readOptions } from '../../src/library/options';

const given = (options: unknown) => readOptions(options as Parameters<typeof readOptions>[0]);

describe('the options of createTocsin', () => {
  it('are read as the server reads them', () => {
    const handlers = defineHandlers({ 'email.send': () => undefined });
    expect(
      given({
        handlers,
        delivery: { batchSize: 100 },
        queues: { mail: { concurrency: 20, visibilityTimeout: '1m', maxSize: undefined } },
        limits: { stripe: { limit: 100, period: 'minute' } },
        crons: {
          nightly: { expression: '@daily', job: { type: 'report.build', args: [1], options: { maxAttempts: 2 } } },
        },
      }),
    ).toEqual({
      handlers,
      delivery: { batchSize: 100 },
      queues: { mail: { concurrency: 20, visibility_timeout_ms: 60_000 } },
      limits: { stripe: { limit: 100, period_ms: 60_000 } },
      crons: {
        nightly: {
          name: 'nightly',
          expression: '@daily',
          job_template: { type: 'report.build', args: [1], options: { max_attempts: 2 } },
        },
      },
    });
  });

  it('leave the values of variables open', () => {
    const [url, routingKey] = [{ env: 'PAGER_URL' }, { env: 'PAGER_KEY' }];
    const { webhooks, alerts } = given({
      webhooks: { pager: { url, routingKey, events: ['alert.*'], format: 'pagerduty' } },
      alerts: { late: { queue: 'mail', metric: 'oldest_age', above: '5m', for: '1m', webhook: 'pager' } },
    });
    expect(webhooks).toEqual({ pager: { url, routing_key: routingKey, events: ['alert.*'], format: 'pagerduty' } });
    const late = { queue: 'mail', metric: 'oldest_age', above: '5m', for: '1m', webhook: 'pager' };
    expect(alerts).toEqual({ late });
  });

  it.each([
    [
      { handler: {} },
      'createTocsin: handler: is not known; use one of handlers, delivery, queues, limits, crons, webhooks, alerts, redact. Did you mean "handlers"?',
    ],
    [{ handlers: { 'email.send': () => 1 } }, 'createTocsin: handlers: must be what defineHandlers returned'],
    [{ delivery: { batchSize: 0 } }, 'createTocsin: delivery.batchSize: must be a whole number from 1 to 100'],
    [
      { delivery: { batch: 1 } },
      'createTocsin: delivery.batch: is not known; use one of batchSize, timeoutMs, maxConcurrency. Did you mean "batchSize"?',
    ],
    [{ queues: { Mail: {} } }, /^createTocsin: queues\.Mail: its name/],
    [{ queues: { mail: 20 } }, 'createTocsin: queues.mail: must be an object'],
    [{ queues: { mail: { concurency: 20 } } }, /^createTocsin: queues\.mail: The queue setting concurency/],
    [{ queues: { mail: { concurrency: 0 } } }, /^createTocsin: queues\.mail: concurrency/],
    [{ limits: { stripe: {} } }, /^createTocsin: limits\.stripe: concurrency or limit/],
    [{ limits: { stripe: { limit: 5 } } }, 'createTocsin: limits.stripe: period is required with limit'],
    [{ limits: { stripe: { limit: 5, period: 's', expiresAt: 'x' } } }, /^createTocsin: limits\.stripe: /],
    [{ limits: { 'no key': { concurrency: 1 } } }, /^createTocsin: limits\.no key: its name/],
    [{ redact: 'password' }, 'createTocsin: redact: must be a list'],
    [{ redact: ['password', 'card..number'] }, /^createTocsin: redact: "card\.\.number" must be names/],
    [{ webhooks: { ops: { events: ['*'] } } }, /^createTocsin: webhooks\.ops: url is required/],
    [{ webhooks: { ops: { url: 'ftp://x', events: ['*'] } } }, /^createTocsin: webhooks\.ops: url must be/],
    [
      { webhooks: { ops: { url: { env: '' }, events: ['*'] } } },
      /^createTocsin: webhooks\.ops: url must be a string, or/,
    ],
    [{ webhooks: { ops: hook({ events: ['job.exploded'] }) } }, /^createTocsin: webhooks\.ops: events/],
    [
      { webhooks: { ops: hook({ evnts: ['*'] }) } },
      /^createTocsin: webhooks\.ops: evnts is not known; use one of url,/,
    ],
    [{ webhooks: { ops: hook({ format: 'pagerduty' }) } }, /^createTocsin: webhooks\.ops: routing_key is required/],
    [
      { webhooks: { ops: hook({ format: { template: { a: '{{b}}' } } }) } },
      /^createTocsin: webhooks\.ops: format\.template/,
    ],
    [{ webhooks: { ops: hook({ secret: 'short' }) } }, /^createTocsin: webhooks\.ops: secret must be/],
    [{ webhooks: { '': hook({}) } }, /^createTocsin: webhooks\.: its name must be/],
    [{ alerts: { late: { metric: 'age', above: 1 } } }, /^createTocsin: alerts\.late: metric must be one of/],
    [{ alerts: { late: rule({ abov: 1 }) } }, /^createTocsin: alerts\.late: abov is not known/],
    [{ alerts: { late: rule({ name: 'x' }) } }, /^createTocsin: alerts\.late: its name is its key/],
    [{ alerts: { late: rule({ webhook: 'ops' }) } }, /^createTocsin: alerts\.late: webhook must be the name of a/],
    [{ crons: { Nightly: {} } }, /^createTocsin: crons\.Nightly: its name/],
    [
      { queues: { mail: { allowedJobTypes: Array(100).fill('a'.repeat(255)) } }, crons: big() },
      /^createTocsin: queues, limits, crons, webhooks and alerts: take \d+ bytes together; at most 524288/,
    ],
  ])('are refused, %#', (options, message) => {
    expect(() => given(options)).toThrow(typeof message === 'string' ? new TypeError(message) : message);
  });

  it('are accepted once', async () => {
    // The Worker under test has told its own.
    await import('../../src/index');
    expect(() => createTocsin()).toThrow(/called twice/);
  });
});

const hook = (change: object) => ({ url: 'https://ops.example/x', events: ['*'], ...change });
const rule = (change: object) => ({ metric: 'depth', above: 1, ...change });

function big() {
  const entry = { expression: '@daily', job: { type: 'a', args: ['x'.repeat(100_000)] } };
  return Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`cron-${i}`, entry]));
}
