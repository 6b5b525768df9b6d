// `tocsin top` against the queue in `wrangler dev`: on a screen of the test, and in a terminal of the system.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dev, until } from '../docs/dev.mjs';
import { against, cli, load } from './cli.mjs';

const { createApi, runTop } = await load('top/api.ts', 'top/run.ts');

const LIMIT_MS = 120_000;
const SIZE = { columns: 130, rows: 30 };

let folder;
let server;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-top-'));
  server = await dev(['wrangler.toml'], { state: join(folder, 'state'), registry: join(folder, 'registry') });
});
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const { run, json, call } = against(() => server.url);

const ESC = '\x1b';
/** The window is cleared; or a line is put at a row, up to the next of these. */
const DRAWN = new RegExp(
  `${ESC}\\[2J|${ESC}\\[(\\d+);1H${ESC}\\[2K((?:(?!${ESC}\\[(?:\\d+;1H|\\?2026l|2J))[^])*)`,
  'g',
);
const TONES = new RegExp(`${ESC}\\[[\\d;]*m`, 'g');

/** What a terminal shows after what was written. */
class Shown {
  lines = [];
  write(text) {
    for (const [, row, line] of text.matchAll(DRAWN)) {
      if (row === undefined) this.lines = [];
      else this.lines[Number(row) - 1] = line.replace(TONES, '');
    }
  }
  get text() {
    return Array.from(this.lines, (line) => (line ?? '').trimEnd()).join('\n');
  }
  async has(pattern) {
    await until(`${pattern} on the screen`, LIMIT_MS, () => pattern.test(this.text)).catch((error) => {
      throw new Error(`${error.message}:\n${this.text}`);
    });
  }
}

/** Starts top on a screen of the test. `requests`: what it asked for. */
async function start(place) {
  const stop = new AbortController();
  const api = createApi({ url: server.url, key: undefined }, stop.signal);
  const requests = [];
  const get = (path) => {
    requests.push(path);
    return api.get(path);
  };
  const shown = new Shown();
  let listener;
  const screen = {
    columns: () => SIZE.columns,
    rows: () => SIZE.rows,
    write: (text) => shown.write(text),
    take: (given) => {
      listener = given;
      return () => {
        listener = undefined;
      };
    },
    suspend: () => undefined,
  };
  const session = await api.get('/admin/session');
  const options = { api: { ...api, get }, session, place, url: server.url, screen, color: true, now: Date.now };
  const exit = runTop(options).finally(() => stop.abort());
  return {
    shown,
    requests,
    press: (bytes) => listener.typed(bytes),
    async quit() {
      listener.typed('q');
      assert.equal(await exit, 0);
      assert.equal(listener, undefined, 'the window is given back');
    },
  };
}

async function failNext(queue, message) {
  const { jobs } = await call('POST', '/workers/fetch', { queues: [queue], worker_id: 'tester' });
  await call('POST', '/workers/nack', { job_id: jobs[0].id, error: { code: 'smtp', type: 'SmtpError', message } });
}

describe('tocsin top', { timeout: 900_000 }, () => {
  it('shows a new job of a queue without being asked, and asks only about that queue', async () => {
    await json('enqueue', 'a.b', '--queue', 'first');
    await json('enqueue', 'a.b', '--queue', 'second');
    const top = await start({ page: 'queues' });
    await top.shown.has(/live/);
    await top.shown.has(/first +active +1 /);
    top.requests.length = 0;
    await json('enqueue', 'a.b', '--queue', 'first');
    await top.shown.has(/first +active +2 /);
    assert.deepEqual([...new Set(top.requests)], ['/admin/queues/first']);
    await top.quit();
  });

  it('pauses a queue after a question, and resumes it', async () => {
    await json('enqueue', 'a.b', '--queue', 'halt');
    const top = await start({ page: 'queue', name: 'halt' });
    await top.shown.has(/p pause/);
    top.press('p');
    await top.shown.has(/Pause halt\? .* y: yes/);
    top.press('y');
    await top.shown.has(/status +paused/);
    assert.equal((await call('GET', '/queues/halt')).queue.status, 'paused');
    top.press('p');
    await top.shown.has(/status +active/);
    await top.quit();
  });

  it('redrives a group of failures after it has counted them, and shows the story of a job', async () => {
    await call('PUT', '/queues/mail/config', { default_retry: { on_exhaustion: 'dead_letter', max_attempts: 1 } });
    for (const host of [1, 2, 3]) {
      await json('enqueue', 'email.send', '--queue', 'mail');
      await failNext('mail', `no route to host ${host}`);
    }
    const top = await start({ page: 'failures' });
    await top.shown.has(/3 .*email\.send +mail .*no route to host <n>/);
    top.press('r');
    await top.shown.has(/Redrive 3 jobs\?/);
    top.press('n');
    await top.shown.has(/Nothing was changed/);
    top.press('\r');
    await top.shown.has(/discarded +mail +email\.send/);
    top.press('\r');
    await top.shown.has(/attempt failed +/);
    assert.match(top.shown.text, /discarded +It was discarded after attempt 1: SmtpError/);
    top.press('gf');
    await top.shown.has(/r redrive/);
    top.press('r');
    await top.shown.has(/Redrive 3 jobs\?/);
    top.press('y');
    await top.shown.has(/3 of 3/);
    await top.shown.has(/No failures/);
    assert.equal((await call('GET', '/jobs/count?queue=mail&state=available')).count, 3);
    await top.quit();
  });

  it('cancels all that match a search, in the state that is shown', async () => {
    for (const to of ['ada', 'ada', 'bob']) await json('enqueue', 'card.send', to, '--queue', 'cards');
    const top = await start({ page: 'jobs', q: 'ada' });
    await top.shown.has(/2 in all/);
    top.press('Ac');
    await top.shown.has(/Cancel 2 jobs\?/);
    top.press('y');
    await top.shown.has(/cancel .*: 2 of 2/);
    await top.shown.has(/cancelled +cards +card\.send/);
    assert.equal((await call('GET', '/jobs/count?queue=cards&state=available')).count, 1);
    await top.quit();
  });

  it('changes the row of a job that ends, and only counts those that are newer', async () => {
    const { job } = await json('enqueue', 'one.by', '--queue', 'rows');
    const top = await start({ page: 'jobs', q: 'one.by' });
    await top.shown.has(new RegExp(`${job.id} +available`));
    await json('enqueue', 'one.by', '--queue', 'rows');
    await top.shown.has(/1 newer: u/);
    await json('cancel', job.id);
    await top.shown.has(new RegExp(`${job.id} +cancelled`));
    top.press('u');
    await top.shown.has(/2 in all/);
    await top.quit();
  });

  it('says why a page cannot be shown', async () => {
    const top = await start({ page: 'queue', name: 'nowhere' });
    await top.shown.has(/Queue nowhere not found/);
    await top.quit();
  });

  it('prints one page where there is no terminal, as text and as JSON', async () => {
    await json('enqueue', 'a.b', '--queue', 'printed');
    const { code, stdout } = await run('top', 'queues');
    assert.equal(code, 0);
    assert.match(stdout, /^Queues\n\nQUEUE +STATUS +AVAILABLE/);
    assert.match(stdout, /^printed +active +1 /m);
    assert.ok(!stdout.includes(ESC));
    const { page, items } = await json('top', 'queues');
    assert.equal(page, 'queues');
    assert.ok('oldest_available_at' in items[0]);
    assert.equal((await run('top', 'queue', 'nowhere')).code, 1);
    assert.equal((await run('top', 'nowhere')).code, 2);
    assert.equal((await run('top', 'queues', '--state', 'active')).code, 2);
  });
});

const hasTerminal = /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '');

describe('tocsin top in a terminal', { timeout: 900_000, skip: !hasTerminal }, () => {
  /** Starts the program in a terminal of its own. */
  async function terminal() {
    const command = `stty rows 24 cols 100; exec "${process.execPath}" "${await cli()}" top --url ${server.url}; `;
    const child = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
    const shown = new Shown();
    const run = { child, shown, raw: '', ended: once(child, 'close').then(([code]) => code) };
    child.stdout.setEncoding('utf8').on('data', (text) => {
      run.raw += text;
      shown.write(run.raw);
    });
    return run;
  }

  const GIVEN_BACK = `${ESC}[?25h${ESC}[?1049l`;

  it('takes the window, reads keys, and gives it back', async () => {
    await json('enqueue', 'a.b', '--queue', 'tty');
    const run = await terminal();
    await run.shown.has(/tty +active/);
    run.child.stdin.write('gq');
    await run.shown.has(/Queues {2}\d+ in all/);
    run.child.stdin.write('q');
    assert.equal(await run.ended, 0);
    assert.ok(run.raw.includes(GIVEN_BACK), JSON.stringify(run.raw.slice(-200)));
  });

  it('gives the window back when it is asked to stop', async () => {
    const run = await terminal();
    await run.shown.has(/Overview/);
    const found = spawnSync('ps', ['-o', 'pid=', '--ppid', String(run.child.pid)], { encoding: 'utf8' });
    process.kill(Number(found.stdout.trim().split(/\s+/)[0]), 'SIGTERM');
    assert.equal(await run.ended, 143);
    assert.ok(run.raw.includes(GIVEN_BACK), JSON.stringify(run.raw.slice(-200)));
  });
});
