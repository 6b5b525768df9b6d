// The page about Cloudflare's own queues and workflows, word for word: its Worker hands work from one to the other.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { dev, root, until } from './dev.mjs';
import { codeOf } from './text.mjs';

const { blocks } = codeOf('docs/start/beside-cloudflare.md');
const blockIn = (language) => blocks.find(({ lang }) => lang === language).text;

/** For a slow machine: Cloudflare's queue waits five seconds for a batch to fill. */
const LIMIT_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), 'tocsin-beside-'));
let server;

async function jobs(query) {
  const answer = await (await fetch(`${server.url}/ojs/v1/jobs?${query}`)).json();
  assert.ok(Array.isArray(answer.jobs), JSON.stringify(answer));
  return answer.jobs;
}

describe('the queue beside those of Cloudflare', { timeout: 900_000 }, () => {
  before(async () => {
    mkdirSync(join(folder, 'src'));
    writeFileSync(join(folder, 'src/index.ts'), blockIn('ts'));
    writeFileSync(join(folder, '.dev.vars'), 'ALLOW_LOCALHOST=true\n');
    const library = JSON.stringify(join(root, 'src/library/index.ts'));
    writeFileSync(join(folder, 'wrangler.toml'), `${blockIn('toml')}\n[alias]\n"tocsin/queue" = ${library}\n`);
    const places = { state: join(folder, 'state'), registry: join(folder, 'registry') };
    server = await dev([join(folder, 'wrangler.toml')], places);
  });
  after(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('makes jobs of messages', async () => {
    for (const file of ['a.pdf', 'b.pdf']) await fetch(`${server.url}/${file}?customer=ada`, { method: 'POST' });
    const done = await until('the jobs of both messages', LIMIT_MS, async () => {
      const found = await jobs('queue=uploads&state=completed');
      return found.length === 2 && found;
    });
    assert.deepEqual(done.map(({ args }) => args[0].file).sort(), ['a.pdf', 'b.pdf']);
  });

  it('runs a workflow for a job, which enqueues another job and ends the first', async () => {
    const begun = await fetch(`${server.url}/accounts?address=ada@example.com`, { method: 'POST' });
    const { id } = await begun.json();
    const job = await until('the end of the job', LIMIT_MS, async () => {
      const found = (await jobs(`id=${id}`))[0];
      return found?.state === 'completed' && found;
    });
    const [mail] = await jobs('queue=mail');
    assert.deepEqual(job.result, { mail: mail.id });
    assert.deepEqual(mail.args, ['ada@example.com', 'Welcome!']);
  });
});
