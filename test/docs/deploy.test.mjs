// The configuration in the checkout deploys as it is, into an account that has no handler Worker yet.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { root, wrangler } from './dev.mjs';

const folder = mkdtempSync(join(tmpdir(), 'tocsin-deploy-'));
after(() => rmSync(folder, { recursive: true, force: true }));

async function dryRun(name, config) {
  const outdir = join(folder, name);
  const { code, output } = await wrangler('deploy', '--dry-run', '--outdir', outdir, '-c', config);
  assert.equal(code, 0, output);
  assert.ok(readdirSync(outdir).includes('index.js'), output);
  return output;
}

/** What the queue with its dashboard may take, KiB as it is uploaded. */
const MAX_GZIPPED_KIB = 700;

const sizes = (text) => /Total Upload: ([\d.]+) KiB \/ gzip: ([\d.]+) KiB/.exec(text).slice(1).map(Number);

describe('wrangler deploy --dry-run', { timeout: 900_000 }, () => {
  it('builds the queue from the plain configuration, which binds nothing, and is as large as the page says', async () => {
    const output = await dryRun('plain', 'wrangler.toml');
    assert.match(output, /No bindings found/);
    const page = readFileSync(join(root, 'docs/start/deploy.md'), 'utf8');
    assert.match(page, /No bindings found/);
    // Every change makes another size; the page must be near it.
    for (const [index, size] of sizes(output).entries()) {
      const said = sizes(page)[index];
      assert.ok(Math.abs(size - said) < 0.25 * size, `the page says ${said} KiB, it is ${size} KiB`);
    }
  });

  it('builds a queue that takes no more than its bound, and almost a fifth less without its dashboard', async () => {
    const [, whole] = sizes(await dryRun('whole', 'wrangler.toml'));
    assert.ok(whole <= MAX_GZIPPED_KIB, `${whole} KiB`);
    const main = join(folder, 'index.ts');
    const library = JSON.stringify(join(root, 'src/library/headless'));
    writeFileSync(
      main,
      `export * from ${library};\nimport { createTocsin } from ${library};\nexport default createTocsin().worker();\n`,
    );
    const config = join(folder, 'wrangler.headless.toml');
    const plain = readFileSync(join(root, 'wrangler.toml'), 'utf8');
    writeFileSync(config, plain.replace('"src/index.ts"', JSON.stringify(main)).replace(/\[build\][^[]*/, ''));
    const [, headless] = sizes(await dryRun('headless', config));
    assert.ok(headless < 0.82 * whole, `${headless} KiB of ${whole} KiB`);
  });

  it('builds the queue with a handler bound, and the handler', async () => {
    const output = await dryRun('bound', 'examples/handler-of-your-own/queue.toml');
    assert.match(output, /env\.GREETER \(greeter\)/);
    await dryRun('handler', 'examples/handler-of-your-own/wrangler.toml');
  });

  it('builds a queue for staging from a copy with the lines that the document changes', async () => {
    const page = readFileSync(join(root, 'docs/start/deploy.md'), 'utf8');
    const [name, binding] = Array.from(
      page.slice(page.indexOf('## Staging')).matchAll(/```toml\n(.*?)```/gs),
      (m) => m[1],
    );
    const plain = readFileSync(join(root, 'wrangler.toml'), 'utf8');
    const config = join(folder, 'wrangler.staging.toml');
    const main = JSON.stringify(join(root, 'src/index.ts'));
    const own = plain.replace('name = "tocsin"\n', name).replace('"src/index.ts"', main);
    writeFileSync(config, `${own}\n${binding}`);
    const output = await dryRun('staging', config);
    assert.match(name, /^name = "tocsin-staging"\n$/);
    assert.match(output, /env\.GREETER \(greeter-staging\)/);
  });
});
