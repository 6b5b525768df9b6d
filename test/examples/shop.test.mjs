// The shop as it is run by who tries it: its two Workers and the queue in one `wrangler dev`.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { unstable_readConfig as readConfig } from 'wrangler';
import { dev, root, until } from '../docs/dev.mjs';
import { makeFolder } from './processes.mjs';

const CONFIGS = ['examples/shop/wrangler.toml', 'examples/shop/queue.toml', 'examples/shop/jobs.toml'];
const LIMIT_MS = 120_000;
const ORDER = { email: 'ada@example.com', cents: 1900, items: ['lamp'] };

describe('the shop', { timeout: 900_000 }, () => {
  const folder = makeFolder();
  let shop;
  before(async () => {
    shop = await dev(CONFIGS, { state: join(folder.path, 'state'), registry: join(folder.path, 'registry') });
  });
  after(async () => {
    await shop?.stop();
    folder.remove();
  });

  async function call(method, path, body) {
    const response = await fetch(shop.url + path, { method, ...(body && { body: JSON.stringify(body) }) });
    const answer = await response.json();
    assert.equal(response.status, 200, `${method} ${path}: ${JSON.stringify(answer)}\n${shop.output()}`);
    return answer;
  }

  const endOf = (id) =>
    until(`the end of order ${id}`, LIMIT_MS, async () => {
      const order = await call('GET', `/orders/${id}`);
      return order.state !== 'running' && order;
    });

  it('takes an order through all its steps', async () => {
    const { id } = await call('POST', '/orders', { ...ORDER, number: '17', card: 'visa' });
    const order = await endOf(id);
    assert.equal(order.state, 'completed');
    assert.deepEqual(
      order.steps.map(({ state }) => state),
      ['completed', 'completed', 'completed'],
    );
  });

  it('gets its money after all when a card was declined and the customer gives another one', async () => {
    const { id } = await call('POST', '/orders', { ...ORDER, number: '18', card: 'expired-1' });
    assert.equal((await endOf(id)).state, 'failed');
    const paid = await call('POST', '/payments/18', { card: 'visa' });
    assert.equal(paid.state, 'completed');
    assert.match(paid.result.receipt, /^18\//);
    assert.deepEqual(await call('POST', '/payments/18', { card: 'visa' }), { state: 'nothing to pay' });
  });

  it('stops payments for a while, and starts them again', async () => {
    const stopped = await call('POST', '/payments-stop');
    assert.equal(stopped.override.concurrency, 0);
    const { id } = await call('POST', '/orders', { ...ORDER, number: '19', card: 'visa' });
    await until('the reservation beside the charge', LIMIT_MS, async () => {
      const { steps } = await call('GET', `/orders/${id}`);
      const [charge, reservation] = steps[1].steps;
      assert.notEqual(charge.state, 'completed');
      return reservation.state === 'completed';
    });
    await call('POST', '/payments-start');
    assert.equal((await endOf(id)).state, 'completed');
  });

  it('declares its schedules as often as it likes', async () => {
    const first = await call('POST', '/setup');
    assert.deepEqual(first.created.sort(), ['sales-report', 'stock-report']);
    const again = await call('POST', '/setup');
    assert.deepEqual(again.unchanged.sort(), ['sales-report', 'stock-report']);
    assert.equal(again.entries[0].timezone, 'Europe/Paris');
  });

  it('indexes its catalogue once for many changes', async () => {
    const first = await call('POST', '/catalogue');
    const second = await call('POST', '/catalogue');
    assert.notEqual(second.id, first.id);
    assert.equal(second.state, 'scheduled');
  });

  it('answers with what is wrong', async () => {
    const response = await fetch(`${shop.url}/orders/nonsense`);
    assert.equal(response.status, 422);
    assert.equal((await response.json()).code, 'not_found');
  });
});

it('the shop’s queue is the one that is deployed, with handlers', () => {
  const [deployed, shop] = ['wrangler.toml', CONFIGS[1]].map((path) => readConfig({ config: join(root, path) }));
  for (const key of ['name', 'main', 'compatibility_date', 'durable_objects', 'migrations']) {
    assert.deepEqual(shop[key], deployed[key], key);
  }
});
