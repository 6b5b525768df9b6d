// A page that is open on a queue in which nothing happens asks nothing.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dashboard } from './support/index.mjs';
import { live } from './support/pages.mjs';

const TEN_MINUTES = 600_000;

describe('an open page, while nothing happens', { timeout: 120_000 }, () => {
  const board = dashboard();

  for (const path of [
    '',
    'queues?name=idle',
    'queues/idle',
    'queues/idle?tab=types',
    'queues/idle?tab=settings',
    'workers',
  ]) {
    it(`sends no request in ten minutes: /ui/${path}`, async () => {
      await board.call('POST', 'jobs', { type: 'wait.for.worker', args: [], queue: 'idle' });
      const asked = [];
      const said = [];
      const page = await board.newPage(`/ui/${path}`, {
        prepare: async (fresh) => {
          await fresh.clock.install();
          fresh.on('request', (request) => asked.push(request.url()));
          fresh.on('websocket', (socket) => socket.on('framesent', ({ payload }) => said.push(payload)));
        },
      });
      await live(page);
      await page.waitForLoadState('networkidle');
      await page.waitForFunction(() => !document.querySelector('.skeleton'));
      asked.length = 0;
      said.length = 0;
      // A minute at a time, so that what the page says to prove its connection is answered.
      for (let passed = 0; passed < TEN_MINUTES; passed += 20_000) {
        const proofs = said.length;
        await page.clock.runFor(20_000);
        if (said.length > proofs) await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done())));
      }
      assert.deepEqual(asked, []);
      // What it says wakes no object: the Worker alone answers it.
      assert.deepEqual(new Set(said), new Set(['ping']));
    });
  }
});
