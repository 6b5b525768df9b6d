// The commands that stay open, draw or ask, as people run them: in a colour terminal, a wide and a narrow one.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { QUIET, root } from '../docs/dev.mjs';
import { against, cli, NODE } from './cli.mjs';
import { inTerminal, lacksTerminal } from './pty.mjs';

const CTRL_C = '\x03';
const CLEAR = '\r\x1b[K';
const lacking = lacksTerminal();
if (lacking) console.log(`Commands in a terminal are left out: ${lacking}`);

describe('in a terminal', { skip: lacking, timeout: 600_000 }, () => {
  const runs = [];
  let folder;
  let server;
  let url;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tocsin-terminal-'));
    const { CI, FORCE_COLOR, ...quiet } = QUIET;
    const state = ['--inspector-port', '0', '--persist-to', join(folder, 'state')];
    server = await open(['dev', '--no-open', ...state], { cwd: join(root, 'test/cli/worker'), env: quiet });
    [, url] = await server.until(/The queue is ready at (http:\S+)/);
  });
  after(async () => {
    for (const run of runs) run.kill();
    await Promise.all(runs.map(({ ended }) => ended));
    rmSync(folder, { recursive: true, force: true });
  });

  async function open(args, options) {
    const run = inTerminal([NODE, await cli(), ...args], options);
    runs.push(run);
    return run;
  }

  const { call } = against(() => url);

  it('dev becomes ready, shows its own address only, and ends at Ctrl-C', async () => {
    assert.ok(server.raw.includes('Ready on \x1b['), 'wrangler prints in colours');
    const addresses = server.text.match(/http:\/\/(?:localhost|127\.0\.0\.1):\d+/g);
    const { port } = new URL(url);
    assert.deepEqual(new Set(addresses.map((address) => new URL(address).port)), new Set([port]));
    assert.equal((await fetch(`${url}/ojs/v1/health`)).status, 200);
  });

  for (const columns of [120, 60]) {
    it(`tail prints events and ends at Ctrl-C, with ${columns} columns`, async () => {
      const run = await open(['tail', '--url', url], { columns });
      // It says nothing before the first event.
      let isSeen = false;
      const seen = run.until(/job\.enqueued +tailed +a\.b/).then(() => {
        isSeen = true;
      });
      while (!isSeen) {
        await call('POST', '/jobs', { type: 'a.b', args: [], options: { queue: 'tailed' } });
        await Promise.race([seen, new Promise((resolve) => setTimeout(resolve, 200))]);
      }
      run.type(CTRL_C);
      assert.equal(await run.ended, 0);
      assert.ok(run.isRestored());
    });

    for (const [name, keys, code] of [
      ['q', 'q', 0],
      ['Ctrl-C', CTRL_C, 0],
    ]) {
      it(`top fits ${columns} columns, and gives the window back at ${name}`, async () => {
        const run = await open(['top', '--url', url], { columns });
        await run.until(/tailed/);
        run.type(keys);
        assert.equal(await run.ended, code);
        const end = run.raw.indexOf('\x1b[?25h\x1b[?1049l');
        assert.ok(end > 0, 'cursor and page are as before');
        assert.ok(run.isRestored());
        const lines = run.raw.slice(0, end).split('\x1b[2K').slice(1);
        const widths = lines.map((line) => stripVTControlCharacters(line).length);
        assert.ok(Math.max(...widths) <= columns, `${Math.max(...widths)} columns`);
      });
    }

    it(`export, import and migrate draw one line that fits ${columns} columns, and remove it`, async () => {
      const queue = `a-queue-whose-name-takes-half-of-a-line-${columns}`;
      const options = { queue, delay_until: '2999-01-01T00:00:00Z' };
      const jobs = Array.from({ length: 500 }, (_, n) => ({ type: 'a.b', args: [n], options }));
      await call('POST', '/jobs/batch', { jobs });
      const file = join(folder, `${columns}.ndjson`);
      const source = await sidekiq();
      const moved = JSON.stringify({ class: 'Mail', args: [1], jid: '0123456789abcdef01234567', created_at: 1 });
      source.lists.set('queue:mail', [moved]);
      for (const [args, last] of [
        [['export', queue, '--output', file], `${queue} +500`],
        [['import', file, '--merge'], `${queue} +0 +500`],
        [['migrate', 'sidekiq', source.url, '--dry-run'], '1 would be moved|1'],
      ]) {
        const run = await open([...args, '--url', url], { columns });
        assert.equal(await run.ended, 0, run.text);
        const [, ...drawn] = run.raw.split(CLEAR);
        assert.ok(drawn.length >= 2, `${args[0]}: it is drawn and removed`);
        for (const line of drawn.slice(0, -1)) assert.ok(line.length < columns && !line.includes('\n'), line);
        assert.match(drawn.at(-1), new RegExp(last));
      }
      source.close();
    });

    it(`init asks, and does what is answered, with ${columns} columns`, async () => {
      const cwd = mkdtempSync(join(folder, 'init-'));
      const run = await open(['init', 'shop', '--no-install'], { cwd, columns });
      await run.until(/Which configuration\?/);
      run.type('\x1b[B\r');
      await run.until(/Write these files\?/);
      run.type('y');
      assert.equal(await run.ended, 0, run.text);
      assert.match(run.text, /Next:\n {2}cd shop\n/);
      assert.ok(run.isRestored());
      assert.match(readFileSync(join(cwd, 'shop/wrangler.toml'), 'utf8'), /name = "shop"/);
      const declined = await open(['init', 'other', '--no-install', '--config', 'jsonc'], { cwd, columns });
      await declined.until(/Write these files\?/);
      declined.type(CTRL_C);
      assert.equal(await declined.ended, 1);
      assert.match(declined.text, /Nothing was written/);
      assert.ok(declined.isRestored() && !existsSync(join(cwd, 'other')));
    });
  }

  it('dev ends at Ctrl-C, and leaves the terminal as it was', async () => {
    server.type(CTRL_C);
    assert.equal(await server.ended, 0, server.text);
    assert.ok(server.isRestored());
  });
});

/** As much of Redis as a reader of Sidekiq asks for. */
async function sidekiq() {
  const lists = new Map();
  const bulk = (text) => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
  const array = (items) => `*${items.length}\r\n${items.join('')}`;
  const answers = {
    SMEMBERS: (key) => array(key === 'queues' ? [...lists.keys()].map((name) => bulk(name.slice(6))) : []),
    LLEN: (key) => `:${lists.get(key)?.length ?? 0}\r\n`,
    LRANGE: (key, from) => array(Number(from) < -200 ? [] : (lists.get(key) ?? []).map(bulk)),
    ZCARD: () => ':0\r\n',
    SCAN: () => array([bulk('0'), array([])]),
  };
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.setEncoding('utf8').on('data', (text) => {
      const words = text
        .split('\r\n')
        .filter((_, at) => at % 2 === 0)
        .slice(1);
      socket.write((answers[words[0]] ?? (() => array([])))(...words.slice(1)));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { lists, url: `redis://127.0.0.1:${server.address().port}`, close: () => server.close() };
}
