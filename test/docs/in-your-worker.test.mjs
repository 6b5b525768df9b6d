// The page about the queue in one's own Worker, word for word: its two Workers run, and one enqueues in the other.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { lexer, walkTokens } from 'marked';
import { dev, root, until } from './dev.mjs';

const PAGE = 'docs/start/in-your-worker.md';

const blocks = { ts: [], toml: [], jsonc: [] };
walkTokens(lexer(readFileSync(join(root, PAGE), 'utf8')), (token) => {
  if (token.type === 'code') blocks[token.lang]?.push(token.text);
});

const folder = mkdtempSync(join(tmpdir(), 'tocsin-inside-'));
let server;

/** Writes a project of the page. The checkout stands for the installed package. */
function project(name, code, config) {
  mkdirSync(join(folder, name, 'src'), { recursive: true });
  writeFileSync(join(folder, name, 'src/index.ts'), code);
  const library = JSON.stringify(join(root, 'src/library/index.ts'));
  writeFileSync(join(folder, name, '.dev.vars'), 'ALLOW_LOCALHOST=true\n');
  writeFileSync(join(folder, name, 'wrangler.toml'), `${config}\n[alias]\n"tocsin/queue" = ${library}\n`);
  return join(folder, name, 'wrangler.toml');
}

describe('the queue in one’s own Worker', { timeout: 900_000 }, () => {
  before(async () => {
    const other = project('shop', blocks.ts[1], blocks.toml[1]);
    const own = project('greetings', blocks.ts[0], blocks.toml[0]);
    server = await dev([own, other], { state: join(folder, 'state'), registry: join(folder, 'registry') });
  });
  after(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const completed = (id) =>
    until(`the completion of job ${id}`, 20_000, async () => {
      const { job } = await (await fetch(`${server.url}/ojs/v1/jobs/${id}`)).json();
      return job?.state === 'completed' && job;
    });

  it('enqueues, runs its handlers, and serves its own paths', async () => {
    const { id } = await (await fetch(`${server.url}/Ada`)).json();
    assert.deepEqual((await completed(id)).result, { text: 'Hello, Ada!' });
  });

  it('has a configuration that says the same in both languages', () => {
    const { migrations, ...rest } = JSON.parse(blocks.jsonc[0]);
    assert.deepEqual(rest, { name: 'greetings', main: 'src/index.ts', compatibility_date: '2026-05-03' });
    const line = `new_sqlite_classes = ${JSON.stringify(migrations[0].new_sqlite_classes).replaceAll(',', ', ')}`;
    assert.ok(blocks.toml[0].includes(line));
  });
});
