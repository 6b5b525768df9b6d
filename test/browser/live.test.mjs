// What the dashboard shows changes as it happens.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dashboard } from './support/index.mjs';
import { SOON_MS } from './support/pages.mjs';

describe('live updates', { timeout: 900_000 }, () => {
  const board = dashboard();
  const live = (page) => page.getByRole('button', { name: /^Live updates: Live/ }).waitFor();
  const enqueue = (type, queue) => board.call('POST', 'jobs', { type, args: [{}], queue });

  it('show an event and the count that it changed', async () => {
    await enqueue('first.of.all', 'seen');
    const [events, queues] = [await board.newPage('/ui/events'), await board.newPage('/ui/queues?name=seen')];
    await Promise.all([live(events), live(queues)]);
    const row = queues.getByRole('row').filter({ hasText: 'seen' });
    await row.waitFor();
    await enqueue('second.of.all', 'seen');
    await Promise.all([
      events.getByText('second.of.all').waitFor({ timeout: SOON_MS }),
      row.getByRole('link', { name: '2', exact: true }).waitFor({ timeout: SOON_MS }),
    ]);
  });

  it('are held while they are paused', async () => {
    await enqueue('before.pause', 'held');
    const page = await board.newPage('/ui/events');
    await live(page);
    await page.getByText('before.pause').first().waitFor();
    await page.keyboard.press('.');
    await enqueue('while.paused', 'held');
    await page.getByRole('button', { name: /Paused, [1-9]\d* held/ }).waitFor();
    assert.equal(await page.getByText('while.paused').count(), 0);
    await page.keyboard.press('.');
    await page.getByText('while.paused').first().waitFor({ timeout: SOON_MS });
  });

  it('follow the page that is opened next, however slow the connection is', async () => {
    await enqueue('of.the.first', 'opened.next');
    const page = await board.newPage('/ui/');
    await page.routeWebSocket(/./, (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((message) => setTimeout(() => server.send(message), 100));
      server.onMessage((message) => setTimeout(() => socket.send(message), 100));
    });
    await page.reload();
    await live(page);
    await page.keyboard.press('g');
    await page.keyboard.press('q');
    const row = page.getByRole('table', { name: 'Queues' }).getByRole('row').filter({ hasText: 'opened.next' });
    await row.waitFor();
    // Longer than the answers to both subscriptions take.
    await page.waitForTimeout(1_000);
    await enqueue('of.the.next', 'opened.next');
    await row.getByRole('link', { name: '2', exact: true }).waitFor({ timeout: SOON_MS });
  });

  it('come back after a lost connection, with what happened meanwhile', async () => {
    await enqueue('before.loss', 'lossy');
    const sockets = [];
    let isDown = false;
    const page = await board.newPage('/ui/events?queue=lossy', {
      expect: /WebSocket/,
      prepare: (fresh) =>
        fresh.routeWebSocket(/\/ojs\/v1\/ws$/, (socket) => {
          if (isDown) return void socket.close({ code: 1011 });
          socket.connectToServer();
          sockets.push(socket);
        }),
    });
    await live(page);
    await page.getByText('before.loss').first().waitFor();
    await enqueue('while.connected', 'lossy');
    await page.getByText('while.connected').first().waitFor();
    isDown = true;
    for (const socket of sockets) await socket.close({ code: 1011 });
    await page.getByRole('button', { name: /Reconnecting/ }).waitFor();
    await enqueue('while.lost', 'lossy');
    isDown = false;
    await page.getByText('while.lost').first().waitFor();
    await live(page);
    // Told by the feed, once, without another look at the list.
    assert.equal(await page.getByText('while.lost').count(), 1);
  });
});
