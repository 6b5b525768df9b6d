/** The Worker as a whole: orders that are approved, refused, cancelled, or never answered. */
import { exports } from 'cloudflare:workers';
import { beforeEach, expect, it } from 'vitest';
import type { JobsOf } from '../../../src/library';
import { testQueue } from '../../../src/testing/vitest';
import type { handlers } from '../src/handlers';
import { ledger } from '../src/shop';

const queue = testQueue<JobsOf<typeof handlers>>({ now: '2040-05-01T12:00:00Z' });

beforeEach(() => {
  ledger.charges.clear();
  ledger.places.clear();
});

const post = (path: string, body?: object) =>
  exports.default.fetch(`http://shop/${path}`, { method: 'POST', ...(body && { body: JSON.stringify(body) }) });

async function order(items: string[] = ['lamp', 'chair']): Promise<string> {
  const response = await post('orders', { number: '17', cents: 990, items });
  expect(response.status).toBe(202);
  await queue.idle();
  return ((await response.json()) as { id: string }).id;
}

/** Opens the URL of the mail, and presses a button of its page. @returns what the page then says */
async function press(choice: string): Promise<string> {
  const url = ledger.mails.get('17') as string;
  const page = await (await exports.default.fetch(url, { headers: { Accept: 'text/html' } })).text();
  expect(page).toContain('<h1>Ship order 17?</h1>');
  expect(page).toContain(`<button name="choice" value="${choice}">`);
  const body = new URLSearchParams({ choice });
  const answer = await exports.default.fetch(url, { method: 'POST', headers: { Accept: 'text/html' }, body });
  expect(answer.status).toBe(200);
  await queue.idle();
  return answer.text();
}

/** The job that undoes the order, once it has ended. */
async function undone(id: string) {
  await queue.idle();
  const { undo } = await queue.job(id);
  return queue.job(undo?.jobId ?? 'none');
}

it('ships an order that is approved, and undoes nothing', async () => {
  const id = await order();
  expect(await press('ship')).toContain('Your answer was sent.');
  expect(await queue.job(id)).toMatchObject({ state: 'completed', result: { receipt: expect.any(String) } });
  await expect(queue).toHaveCompleted('parcel.send', ['17']);
  expect([ledger.charges.size, ledger.places.size]).toEqual([1, 2]);
});

it('gives everything back when the order is refused', async () => {
  const id = await order();
  expect([ledger.charges.size, ledger.places.size]).toEqual([1, 2]);
  expect(await press('refuse')).toContain('Your answer was sent.');
  expect(await undone(id)).toMatchObject({ type: 'order.fulfil.undo', state: 'completed', result: { undone: 3 } });
  expect([ledger.charges.size, ledger.places.size]).toEqual([0, 0]);
  expect(await queue.job(id)).toMatchObject({ state: 'discarded', undo: { state: 'completed' } });
});

it('gives everything back when it is cancelled, or when nobody answers', async () => {
  const [cancelled, forgotten] = [await order(), await order()];
  await queue.client.cancel(cancelled);
  expect(await undone(cancelled)).toMatchObject({ state: 'completed' });
  expect([ledger.charges.size, ledger.places.size]).toEqual([1, 2]);
  await queue.advance('3d');
  expect(await undone(forgotten)).toMatchObject({ state: 'completed' });
  expect([ledger.charges.size, ledger.places.size]).toEqual([0, 0]);
});

it('gives back what was done before a step that failed for good', async () => {
  const id = await order(['lamp', 'sold out']);
  await queue.advance('1m');
  const { args } = (await undone(id)) as unknown as { args: [{ steps: object[] }] };
  expect(args[0].steps).toMatchObject([
    { name: 'reserve-1', certain: false },
    { name: 'reserve-0', certain: true },
    { name: 'charge', certain: true },
  ]);
  expect([ledger.charges.size, ledger.places.size]).toEqual([0, 0]);
});
