// A page that is open on a queue in which nothing happens asks nothing.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { dashboard } from './support/index.mjs';
import { live } from './support/pages.mjs';

const TEN_MINUTES = 600_000;

/** Shorter than the page waits for an answer. */
const STEP_MS = 5_000;

describe('an open page, while nothing happens', { timeout: 900_000 }, () => {
  const board = dashboard();
  before(() => board.call('POST', 'jobs', { type: 'wait.for.worker', args: [], queue: 'idle' }));

  for (const path of [
    '',
    'queues?name=idle',
    'queues/idle',
    'queues/idle?tab=types',
    'queues/idle?tab=settings',
    'workers',
  ]) {
    it(`sends no request in ten minutes: /ui/${path}`, async () => {
      const asked = [];
      const said = [];
      let heard = 0;
      const page = await board.newPage(`/ui/${path}`, {
        prepare: async (fresh) => {
          await fresh.clock.install();
          fresh.on('request', (request) => asked.push(request.url()));
          fresh.on('websocket', (socket) => {
            socket.on('framesent', ({ payload }) => said.push(payload));
            socket.on('framereceived', () => heard++);
          });
        },
      });
      await live(page);
      await page.waitForLoadState('networkidle');
      await page.waitForFunction(() => !document.querySelector('.skeleton'));
      await page.clock.runFor(2_000);
      [asked.length, said.length, heard] = [0, 0, 0];
      for (let passed = 0; passed < TEN_MINUTES; passed += STEP_MS) {
        await page.clock.runFor(STEP_MS);
        // What proves the connection is answered in the time of the world, not in that of the page.
        while (heard < said.length) await page.evaluate(() => new Promise((done) => queueMicrotask(done)));
      }
      assert.deepEqual(asked, []);
      // What it says wakes no object: the Worker alone answers it.
      assert.deepEqual(new Set(said), new Set(['ping']));
    });
  }
});
