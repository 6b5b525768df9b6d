// Queues as files, out of one deployment and into another: both in `wrangler dev`.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { dev } from '../docs/dev.mjs';
import { against, cli, load, NODE } from './cli.mjs';

let folder;
const servers = {};

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tocsin-export-'));
  const server = (name) =>
    dev(['wrangler.toml'], { state: join(folder, name), registry: join(folder, `${name}-registry`) });
  [servers.from, servers.to] = await Promise.all([server('from'), server('to')]);
});
after(async () => {
  await Promise.all(Object.values(servers).map((server) => server.stop()));
  rmSync(folder, { recursive: true, force: true });
});

const from = against(() => servers.from.url);
const to = against(() => servers.to.url);
const path = (name) => join(folder, name);

async function fill(queue, count) {
  for (let at = 0; at < count; at += 500) {
    const jobs = Array.from({ length: Math.min(500, count - at) }, (_, n) => ({
      ...{ type: 'test.echo', args: [at + n], options: { queue } },
    }));
    await from.call('POST', '/jobs/batch', { jobs });
  }
}

describe('tocsin export and import', { timeout: 900_000 }, () => {
  it('write a queue into a file, and put the file into another deployment', async () => {
    await fill('mail', 1200);
    const file = path('mail.ndjson');
    const { stdout, code, stderr } = await from.run('export', 'mail', '-o', file);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^QUEUE +JOBS\nmail +1200$/m);
    assert.ok(!existsSync(`${file}.part`));
    assert.equal((await from.run('export', 'mail')).stdout, readFileSync(file, 'utf8'));
    const tried = await to.json('import', file, '--dry-run');
    assert.deepEqual([tried.dry_run, tried.queues[0].imported], [true, 1200]);
    const { queues } = await to.json('import', file);
    assert.deepEqual(
      queues.map(({ queue, imported, known, complete }) => ({ queue, imported, known, complete })),
      [{ queue: 'mail', imported: 1200, known: 0, complete: true }],
    );
    assert.match((await to.run('import', file)).stdout, /^mail +0 +1200 +0$/m);
    assert.equal((await to.run('export', 'mail')).stdout, readFileSync(file, 'utf8'));
  });

  it('take a whole deployment through a pipe, with what holds for all queues', async () => {
    await fill('bulk', 20);
    await from.call('PUT', '/queues/_default/config', { retention: { completed: 'P9D' } });
    await from.call('PUT', '/rate-limits/stripe', { concurrency: 3 });
    await from.call('PUT', '/admin/schemas/email.send/1', { schema: { type: 'array' } });
    const [program, node] = [await cli(), NODE];
    const pipe = `"${node}" "${program}" export --url "${servers.from.url}" | "${node}" "${program}" import --json --url "${servers.to.url}"`;
    const { stdout } = await promisify(execFile)('sh', ['-c', pipe], { env: { ...process.env, CI: 'true' } });
    const { queues, deployment } = JSON.parse(stdout);
    assert.deepEqual(deployment, { imported: 3, known: 0, not_kept: {} });
    assert.deepEqual(queues.map(({ queue, imported, known }) => [queue, imported, known]).sort(), [
      ['bulk', 20, 0],
      ['mail', 0, 1200],
    ]);
    const { config } = await to.call('GET', '/queues/_default/config');
    assert.equal(config.retention.completed, 'P9D');
    assert.equal((await to.call('GET', '/rate-limits/stripe')).override.concurrency, 3);
    const again = JSON.parse((await promisify(execFile)('sh', ['-c', pipe])).stdout);
    assert.deepEqual(again.deployment, { imported: 0, known: 3, not_kept: {} });
  });

  it('refuse a file that is not as it was exported, before anything is sent', async () => {
    const whole = (await from.run('export')).stdout;
    const lines = whole.split('\n');
    const end = lines.findIndex((line) => line.startsWith('{"end":'));
    const cases = [
      [whole.replace('"args":[7]', '"args":[8]'), /Line \d+: part 1, lines \d+ to \d+, is not as it was exported/],
      [lines.slice(0, -3).join('\n'), /Line \d+: the file ends before its end/],
      [`${lines.slice(0, end + 1).join('\n')}\n`, /the file ends before queue bulk/],
      [whole.replace('"version":1', '"version":2'), /has version 2; this program reads files up to version 1/],
      ['', /Line 1: the file is empty/],
    ];
    for (const [at, [text, says]] of cases.entries()) {
      const file = path(`broken-${at}`);
      writeFileSync(file, text);
      const { code, stdout, stderr } = await to.run('import', file);
      assert.deepEqual([code, stdout], [1, ''], stderr);
      assert.match(stderr, says);
    }
    assert.equal((await to.run('import', path('nowhere'))).code, 1);
  });

  it('say of a queue that has other jobs what to do, and give a queue another name', async () => {
    const file = path('bulk.ndjson');
    await from.run('export', 'bulk', '-o', file);
    await to.call('POST', '/jobs', { type: 'a.b', args: [], options: { queue: 'other' } });
    const { code, stderr } = await to.run('import', file, '--queue', 'other');
    assert.equal(code, 1);
    assert.match(stderr, /Queue other has 1 jobs/);
    const merged = await to.json('import', file, '--queue', 'other', '--merge');
    assert.deepEqual(merged.queues[0].not_kept, { id_in_another_queue: 20, settings: 1 });
    const all = path('all.ndjson');
    await from.run('export', '-o', all);
    assert.equal((await to.run('import', all, '--queue', 'other')).code, 2);
  });

  it('leave no file behind when an export fails', async () => {
    const file = path('nothing.ndjson');
    const { code, stderr } = await from.run('export', 'nothing', '-o', file);
    assert.equal(code, 1);
    assert.match(stderr, /nothing.* not found/i);
    assert.ok(!existsSync(file) && !existsSync(`${file}.part`));
  });
});

describe('the progress of a long command', () => {
  it('is one line with a bar, at a terminal only, and goes when it ends', async () => {
    const { ProgressLine } = await load('transfer/progress.ts');
    let now = 0;
    let written = '';
    const terminal = {
      now: () => now,
      err: (text) => {
        written += text;
      },
    };
    const show = (isWatched, total = 1000, columns = 80) => {
      written = '';
      now = 0;
      const progress = new ProgressLine({ ...terminal, isWatched, columns }, 'mail', total ?? undefined);
      now = 500;
      progress.at(250);
      now = 510;
      progress.at(300);
      progress.end();
      return written;
    };
    const line = 'mail  [======                  ] 25%  250 of 1,000 jobs  500/s';
    assert.equal(show(true), `\r\u001b[K${line}\r\u001b[K`);
    assert.equal(show(false), '');
    assert.equal(show(true, 1000, 30), `\r\u001b[K${line.slice(0, 28)}…\r\u001b[K`, 'it fits a narrow window');
    assert.equal(show(true, null), '\r\u001b[Kmail  250 jobs  500/s\r\u001b[K', 'without a total there is no bar');
  });
});
