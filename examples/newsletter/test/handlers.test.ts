/** The handlers on their own: what each does with its job. */
import { describe, expect, it } from 'vitest';
import { runHandler, runToEnd } from '../../../src/testing';
import { handlers } from '../src/handlers';

const ADA = 'ada@example.com';

describe('mail.send', () => {
  it('says what was sent', async () => {
    const run = await runHandler(handlers, 'mail.send', [{ to: ADA, template: 'welcome' }]);
    expect(run).toMatchObject({ status: 'completed', result: { accepted: ADA } });
    expect(run.log).toMatchObject([{ level: 'info', message: 'sent', fields: { to: ADA, template: 'welcome' } }]);
  });

  it('is tried again while the server is busy, but not after a bounce', async () => {
    const busy = await runHandler(handlers, 'mail.send', [{ to: 'bob@busy.example', template: 'welcome' }]);
    expect(busy).toMatchObject({ status: 'failed', isLast: false });
    const gone = await runHandler(handlers, 'mail.send', [{ to: 'eve@gone.example', template: 'welcome' }]);
    expect(gone).toMatchObject({ error: { code: 'FAIL', message: 'eve@gone.example bounces' }, isLast: true });
  });
});

describe('subscription.begin', () => {
  it('waits two days for the confirmation', async () => {
    const run = await runHandler(handlers, 'subscription.begin', [ADA], { now: 0 });
    expect(run).toMatchObject({ status: 'snoozed', wakes: { at: 2 * 86_400_000, signal: 'confirmed' } });
    expect(run.enqueued).toMatchObject([{ type: 'mail.send', args: [{ to: ADA, template: 'confirm' }] }]);
  });

  it('sends a welcome after the confirmation, and asks only once', async () => {
    const job = await runToEnd(handlers, 'subscription.begin', [ADA], { signals: { confirmed: null } });
    expect(job.result).toEqual({ subscribed: ADA });
    expect(job.enqueued.map(({ args }) => args)).toEqual([
      [{ to: ADA, template: 'confirm' }],
      [{ to: ADA, template: 'welcome' }],
    ]);
  });

  it('ends when the confirmation does not arrive', async () => {
    const job = await runToEnd(handlers, 'subscription.begin', [ADA]);
    expect(job).toMatchObject({ status: 'failed', error: { type: 'SignalTimeoutError' }, isLast: true });
  });
});
