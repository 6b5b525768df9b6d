// What the documents show of the client and of handlers compiles, and what the guides show runs, word for word, against the queue.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dev } from './dev.mjs';
import { documents, modulesOf, prepare, snippetsOf, typeCheck } from './snippets.mjs';

/** Guides whose snippets can be run as they are, on a queue that has what they speak of. */
const GUIDES = [
  'guides/schedules',
  'guides/workflows',
  'guides/unique',
  'guides/limits',
  'operate/dead-letters',
  'guides/bulk-and-queries',
  'operate/queues',
  'start/workers',
  'guides/retries',
  'operate/operations',
  'operate/in-production',
];

/** Queues whose jobs somebody works on meanwhile. */
const WORKED = ['default', 'orders', 'payments', 'mail', 'reports'];

const folder = mkdtempSync(join(tmpdir(), 'tocsin-snippets-'));
after(() => rmSync(folder, { recursive: true, force: true }));

it('the TypeScript of the documents compiles', { timeout: 900_000 }, async () => {
  const snippets = documents().flatMap(snippetsOf);
  assert.ok(snippets.length >= GUIDES.length + 3, `only ${snippets.length} snippets were found`);
  const modules = documents().flatMap(modulesOf);
  assert.ok(modules.length >= 8, `only ${modules.length} modules were found`);
  assert.equal(await typeCheck(join(folder, 'types'), [...snippets, ...modules]), '');
});

describe('the client as the guides show it', { timeout: 900_000 }, () => {
  const pages = GUIDES.map((page) => ({ page, name: basename(page), snippets: snippetsOf(`docs/${page}.md`) }));
  const stop = new AbortController();
  let server;
  let shown;
  let tocsin;
  let working;

  /** Completes whatever comes. */
  async function work() {
    const mine = tocsin.with({ signal: stop.signal, retry: false });
    const worker = mine.worker('test', { queues: WORKED });
    while (!stop.signal.aborted) {
      const jobs = await worker.fetch({ count: 100, waitMs: 200 }).catch(() => []);
      await Promise.all(jobs.map((job) => worker.ack(job, { pages: 1 }).catch(() => undefined)));
    }
  }

  /** What a guide takes to be there already. */
  const GIVEN = {
    'dead-letters': async () => {
      const worker = tocsin.worker('failing', { queues: ['mail'] });
      await tocsin.queues.configure('mail', { default_retry: { on_exhaustion: 'dead_letter' } });
      for (const type of ['smtp.rejected', 'smtp.timeout']) {
        // Somebody else may take it first.
        for (let failed = false; !failed; ) {
          await tocsin.enqueue('email.send', [], { queue: 'mail', maxAttempts: 1, priority: 100 });
          for (const job of await worker.fetch()) failed = (await worker.nack(job, { type })).state === 'discarded';
        }
      }
      assert.equal((await tocsin.deadLetters.stats()).total, 2);
    },
    queues: () => tocsin.enqueue('email.send', [], { queue: 'old-mail' }),
    'in-production': () => tocsin.enqueue('invoice.remind', [17], { queue: 'invoices', delay: '1d' }),
    workers: () => tocsin.enqueue('greeting.write', ['Ada'], { queue: 'greetings' }),
  };

  /** What must be true afterwards. */
  const EXPECTED = {
    schedules: async () => assert.equal((await tocsin.cron.get('nightly-report')).limit, 100),
    workflows: async () => {
      const states = [];
      for await (const { state } of tocsin.workflows.list()) states.push(state);
      assert.deepEqual(states, ['cancelled', 'completed']);
    },
    unique: async () => assert.equal(await tocsin.count({ type: 'account.export' }), 1),
    limits: async () => assert.equal((await tocsin.rateLimits.get('stripe')).override, undefined),
    'dead-letters': async () => assert.equal((await tocsin.deadLetters.stats()).total, 0),
    queues: async () => assert.equal((await tocsin.queues.config('mail')).config.concurrency, 20),
    workers: async () => assert.equal(await tocsin.count({ type: 'greeting.write', state: 'completed' }), 1),
    'in-production': async () => {
      assert.equal(await tocsin.count({ queue: 'invoices', type: 'invoice.remind', state: 'scheduled' }), 1);
      const names = [];
      for await (const { name } of tocsin.alerts.list()) names.push(name);
      assert.equal(names.length, 4);
    },
  };

  before(async () => {
    server = await dev(['wrangler.toml'], { state: join(folder, 'state'), registry: join(folder, 'registry') });
    shown = await prepare(
      join(folder, 'run'),
      pages.flatMap(({ snippets }) => snippets),
    );
    tocsin = new shown.client.TocsinClient({ url: server.url });
    globalThis.tocsin = tocsin;
    working = work();
  });
  after(async () => {
    stop.abort();
    await working;
    await server?.stop();
  });

  for (const { page, name, snippets } of pages) {
    it(`runs: docs/${page}.md`, async () => {
      assert.ok(snippets.length > 0, `docs/${page}.md shows nothing of the client`);
      await GIVEN[name]?.();
      for (const snippet of snippets) await shown.run(snippet.name);
      await EXPECTED[name]?.();
    });
  }
});
