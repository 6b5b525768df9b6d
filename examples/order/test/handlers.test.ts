/** The handler on its own, and what undoes it. */
import { beforeEach, expect, it } from 'vitest';
import { runToEnd, undoHandler } from '../../../src/testing';
import { handlers } from '../src/handlers';
import { ledger } from '../src/shop';

const ORDER = { number: '17', cents: 990, items: ['lamp', 'chair'] };

beforeEach(() => {
  ledger.charges.clear();
  ledger.places.clear();
});

it('charges, reserves and ships an order that is approved', async () => {
  const signals = { approved: { choice: 'ship' } };
  const job = await runToEnd(handlers, 'order.fulfil', [ORDER], { signals });
  expect(job.status).toBe('completed');
  expect(job.enqueued).toMatchObject([
    { type: 'approval.mail', args: ['17', expect.any(String)] },
    { type: 'parcel.send', args: ['17'] },
  ]);
  expect([ledger.charges.size, ledger.places.size]).toEqual([1, 2]);
});

it('gives everything back, the last step first, when the order is refused', async () => {
  const job = await runToEnd(handlers, 'order.fulfil', [ORDER], { signals: { approved: { choice: 'refuse' } } });
  expect(job.error).toMatchObject({ message: 'order 17 was refused' });
  const undo = await undoHandler(handlers, 'order.fulfil', job.steps);
  expect(undo).toMatchObject({ status: 'completed', result: { undone: 3 } });
  expect(undo.log).toMatchObject([
    { message: 'released', fields: { step: 'reserve-1', place: 2 } },
    { message: 'released', fields: { step: 'reserve-0', place: 1 } },
  ]);
  expect([ledger.charges.size, ledger.places.size]).toEqual([0, 0]);
});

it('releases what was perhaps reserved', async () => {
  const undo = await undoHandler(handlers, 'order.fulfil', { 'reserve-0': { begun: true } });
  expect(undo.log).toMatchObject([{ message: 'released', fields: { step: 'reserve-0' } }]);
});
