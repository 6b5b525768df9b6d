// Limit keys: their use, and limits that operators put in their place.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dashboard, KEYS } from './support/index.mjs';
import { answer, assertFitForAll } from './support/pages.mjs';

describe('the page of limits', { timeout: 900_000 }, () => {
  const board = dashboard();
  const enqueue = (key, queue) =>
    board.call('POST', 'jobs', {
      ...{ type: 'wait.for.worker', args: [], options: { queue, rate_limit: { key, concurrency: 2 } } },
    });
  const row = (page, key) => page.getByRole('row').filter({ hasText: key });

  it('overrides a key until a time, and gives it its own limits back', async () => {
    await enqueue('lim.pay', 'lim.a');
    const page = await board.newPage('/ui/limits?key=lim.pay');
    await row(page, 'lim.pay').getByText('/ 2').waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('o');
    const dialog = page.getByRole('dialog', { name: 'Override lim.pay' });
    await dialog.waitFor();
    assert.match(page.url(), /override=lim\.pay/);
    await dialog.getByLabel('Running at once').fill('-1');
    await dialog.getByRole('button', { name: 'Override' }).click();
    await dialog.locator('.field.wrong').filter({ hasText: 'Running at once' }).waitFor();
    await assertFitForAll(page);
    await page.setViewportSize({ width: 1280, height: 800 });
    await dialog.getByLabel('Running at once').fill('0');
    await dialog.getByLabel('Ends').selectOption('in an hour');
    await dialog.getByRole('button', { name: 'Override' }).click();
    await row(page, 'lim.pay').getByText('stopped').waitFor();
    await row(page, 'lim.pay')
      .getByText(/ends in 59 min|ends in 1 h/)
      .waitFor();
    assert.equal((await board.call('GET', 'rate-limits/lim.pay')).override.concurrency, 0);
    await row(page, 'lim.pay').getByRole('button', { name: 'Remove' }).click();
    await answer(page, 'Remove the override');
    await row(page, 'lim.pay').getByText('stopped').waitFor({ state: 'detached' });
    assert.equal((await board.call('GET', 'rate-limits/lim.pay')).override, undefined);
    await assertFitForAll(page);
  });

  it('tells periods as people do', async () => {
    const limits = { key: 'lim.period', rate: 7, period: '10s' };
    await board.call('POST', 'jobs', {
      type: 'wait.for.worker',
      args: [],
      queue: 'lim.c',
      options: { rate_limit: limits },
    });
    const page = await board.newPage('/ui/limits?key=lim.period');
    await row(page, 'lim.period').getByText('0 / 7 in 10 s').waitFor();
    await row(page, 'lim.period').getByRole('button', { name: 'Override' }).click();
    await page.getByRole('dialog').getByText('now 10 s').waitFor();
  });

  it('looks again every five seconds, but only while it is visible', async () => {
    await enqueue('lim.poll', 'lim.b');
    let asked = 0;
    const page = await board.newPage('/ui/limits?key=lim.poll', {
      prepare: async (fresh) => {
        await fresh.clock.install();
        fresh.on('request', (request) => {
          if (request.url().includes('/rate-limits')) asked++;
        });
      },
    });
    await row(page, 'lim.poll').waitFor();
    await enqueue('lim.poll', 'lim.b');
    await board.call('POST', 'workers/fetch', { queues: ['lim.b'], worker_id: 'lim', count: 1 });
    await page.clock.runFor(5_000);
    await row(page, 'lim.poll').getByText('1 / 2').waitFor();
    await page.evaluate(() => Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' }));
    const before = asked;
    await page.clock.runFor(60_000);
    await page.evaluate(() => fetch('/ojs/v1/health').then((response) => response.text()));
    assert.equal(asked, before);
  });

  it('finds no key where none fits, and shows a viewer no action', async () => {
    const job = {
      type: 'wait.for.worker',
      args: [],
      options: { queue: 'roles', rate_limit: { key: 'lim.role', concurrency: 1 } },
    };
    await board.callClosed(KEYS.operator, 'POST', 'jobs', job);
    const page = await board.newPage('/ui/limits', { key: KEYS.viewer });
    await row(page, 'lim.role').waitFor();
    assert.equal(await page.getByRole('button', { name: /Override|Remove/ }).count(), 0);
    await assert.rejects(board.callClosed(KEYS.viewer, 'PUT', 'rate-limits/lim.role', { concurrency: 0 }), /403/);
    await page.getByRole('searchbox', { name: 'Filter by key' }).fill('nothing.like.it');
    await page.getByRole('heading', { name: 'No matching keys' }).waitFor();
  });
});
