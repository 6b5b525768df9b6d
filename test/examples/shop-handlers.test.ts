/** The handlers of the shop, each on its own. */
import { describe, expect, it } from 'vitest';
import handlers from '../../examples/shop/src/handlers';
import { runHandler } from '../../src/testing';

const ORDER = { number: '17', email: 'ada@example.com', card: 'visa', cents: 1900, items: ['lamp'] };
const CHARGE = { number: '17', card: 'expired-1', cents: 1900 };

describe('order.check', () => {
  it('refuses an order with nothing to pay for', async () => {
    const good = await runHandler(handlers, 'order.check', [ORDER]);
    expect(good).toMatchObject({ status: 'completed', result: { number: '17', items: 1 } });
    const empty = await runHandler(handlers, 'order.check', [{ ...ORDER, items: [] }]);
    expect(empty).toMatchObject({ status: 'failed', error: { type: 'TypeError' }, isLast: false });
  });
});

describe('payment.charge', () => {
  it('leaves a declined card to a human', async () => {
    const run = await runHandler(handlers, 'payment.charge', [CHARGE]);
    expect(run).toMatchObject({ error: { code: 'DEAD_LETTER', message: 'card expired-1 was declined' }, isLast: true });
  });

  it('takes the new card that the customer gave', async () => {
    const run = await runHandler(handlers, 'payment.charge', [CHARGE], { meta: { card: 'visa' } });
    expect(run).toMatchObject({ status: 'completed', result: { cents: 1900 } });
  });
});

describe('mail.send', () => {
  it('tells of the steps before it', async () => {
    const job = { parentResults: [{ receipt: '17/1' }] };
    const run = await runHandler(handlers, 'mail.send', [{ to: ORDER.email, template: 'thanks' }], { job });
    expect(run.result).toEqual({ to: ORDER.email, template: 'thanks', about: [{ receipt: '17/1' }] });
  });
});
