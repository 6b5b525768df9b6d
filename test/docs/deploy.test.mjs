// The configuration in the checkout deploys as it is, into an account that has no handler Worker yet.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { wrangler } from './dev.mjs';

const folder = mkdtempSync(join(tmpdir(), 'tocsin-deploy-'));
after(() => rmSync(folder, { recursive: true, force: true }));

async function dryRun(name, config) {
  const outdir = join(folder, name);
  const { code, output } = await wrangler('deploy', '--dry-run', '--outdir', outdir, '-c', config);
  assert.equal(code, 0, output);
  assert.ok(readdirSync(outdir).includes('index.js'), output);
  return output;
}

describe('wrangler deploy --dry-run', { timeout: 120_000 }, () => {
  it('builds the queue from the plain configuration, which binds nothing', async () => {
    assert.match(await dryRun('plain', 'wrangler.toml'), /No bindings found/);
  });

  it('builds the queue with a handler bound, and the handler', async () => {
    const output = await dryRun('bound', 'examples/handler-of-your-own/queue.toml');
    assert.match(output, /env\.GREETER \(greeter\)/);
    await dryRun('handler', 'examples/handler-of-your-own/wrangler.toml');
  });
});
