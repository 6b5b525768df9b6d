/** Orders: each is a workflow. A charge that failed for good waits as a dead letter for another card. */
import type { JobOutcome, WorkflowStatus } from '../../../src/client';
import { type Order, PAYMENTS, type Shop } from './jobs';

/** Checks an order, then charges and reserves side by side, then thanks. */
export async function placeOrder(tocsin: Shop, order: Order): Promise<WorkflowStatus> {
  const { chain, group } = tocsin.flow;
  const { number, card, cents, items, email } = order;
  const steps = chain(
    { type: 'order.check', args: [order] },
    group(
      {
        type: 'payment.charge',
        args: [{ number, card, cents }],
        options: {
          queue: 'payments',
          rateLimit: { key: PAYMENTS, concurrency: 5, rate: 100, period: 'second' },
          retry: { maxAttempts: 8, initialInterval: '2s', onExhaustion: 'dead_letter' },
        },
      },
      { type: 'stock.reserve', args: [{ number, items }] },
    ),
    { type: 'mail.send', args: [{ to: email, template: 'thanks' }], options: { queue: 'mail' } },
  );
  return await tocsin.workflows.start(steps, { name: `order ${number}`, jobOptions: { queue: 'orders' } });
}

/** Redrives a charge that failed for good, with another card. Undefined: no charge of that order waits for one. */
export async function payAgain(tocsin: Shop, number: string, card: string): Promise<JobOutcome | undefined> {
  const query = { type: 'payment.charge', deadLetter: true, where: { 'args.0.number': number } };
  for await (const charge of tocsin.list(query, { limit: 1 })) {
    await tocsin.deadLetters.retry(charge.id, { meta: { card }, retry: { maxAttempts: 3 } });
    return await tocsin.jobs.wait(charge.id);
  }
  return undefined;
}
