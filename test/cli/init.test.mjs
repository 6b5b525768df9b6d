// `tocsin init`, `dev` and `doctor` in folders of every kind, without an install.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { QUIET, root, until } from '../docs/dev.mjs';
import { start, tocsin } from './cli.mjs';

let folder;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'tocsin-init-')), 'My Shop');
  mkdirSync(folder);
});
afterEach(() => rmSync(dirname(folder), { recursive: true, force: true }));

function write(path, text) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}
const read = (path) => readFileSync(join(folder, path), 'utf8');
const run = (...args) => tocsin(args, { cwd: folder });
const init = (...args) => run('init', '--yes', '--no-install', ...args);

/** A Worker without the queue. */
function worker(main = 'const app = { fetch: () => new Response() };\nexport default app;\n', config = '') {
  write('package.json', '{ "name": "shop" }\n');
  write('wrangler.toml', `name = "shop"\nmain = "src/index.ts"\ncompatibility_date = "2026-04-01"\n${config}`);
  write('src/index.ts', main);
}

describe('tocsin init', () => {
  it('does not ask without a terminal, and writes nothing', async () => {
    const { code, stderr } = await run('init');
    assert.equal(code, 2);
    assert.match(stderr, /--yes/);
    assert.deepEqual(readdirSync(folder), []);
  });

  it('says what it would write, and writes nothing, in a dry run', async () => {
    const { code, stdout } = await run('init', '--dry-run', '--json');
    assert.equal(code, 0);
    const { changes, written } = JSON.parse(stdout);
    assert.ok(changes.some(({ path, action }) => path === 'wrangler.jsonc' && action === 'create'));
    assert.equal(written, false);
    assert.deepEqual(readdirSync(folder), []);
  });

  it('starts a project named after its folder, in a folder that need not exist', async () => {
    const { code, stdout, stderr } = await init('sub/New Shop');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Next:\n {2}cd 'sub\/New Shop'\n {2}npm install\n {2}npm run dev\n/m);
    assert.match(read('sub/New Shop/wrangler.jsonc'), /"name": "new-shop"/);
    assert.equal(JSON.parse(read('sub/New Shop/package.json')).name, 'new-shop');
  });

  it('says which folder cannot be made', { skip: process.platform !== 'linux' }, async () => {
    for (const no of ['/proc/nope', '/proc/nope/below']) {
      const { code, stderr } = await init(no);
      assert.equal(code, 1);
      assert.match(stderr, /^tocsin: The folder \/proc\/nope cannot be created: .*\n→ Name another one\./);
    }
  });

  it('writes a deploy that puts schedules into effect, and names it where the project has another one', async () => {
    await init();
    assert.equal(JSON.parse(read('package.json')).scripts.deploy, 'tocsin deploy');
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    worker();
    write('package.json', '{"scripts":{"deploy":"wrangler deploy --minify"}}');
    const { stdout } = await init();
    assert.equal(JSON.parse(read('package.json')).scripts.deploy, 'wrangler deploy --minify');
    assert.match(stdout, /deploy script.*wrangler deploy.*tocsin deploy/s);
  });

  it('never replaces a file', async () => {
    for (const path of ['tsconfig.json', 'test/greeting.test.ts', 'vitest.config.mts']) write(path, 'mine');
    write('package.json', '{"scripts":{"dev":"mine"}}');
    const { stdout } = await init();
    assert.match(stdout, /^keep +tsconfig\.json/m);
    for (const path of ['tsconfig.json', 'test/greeting.test.ts', 'vitest.config.mts'])
      assert.equal(read(path), 'mine');
    assert.equal(JSON.parse(read('package.json')).scripts.dev, 'mine');
  });

  it('opens the queue to this machine in the file that wrangler reads', async () => {
    worker();
    write('.env', 'SECRET=1');
    write('.gitignore', 'node_modules\n');
    await init();
    assert.match(read('.env'), /^SECRET=1\n# .*\nALLOW_LOCALHOST=true\n$/);
    assert.ok(!existsSync(join(folder, '.dev.vars')));
    assert.equal(read('.gitignore'), 'node_modules\n');
  });

  it('keeps variables for development out of a repository', async () => {
    worker();
    write('.gitignore', 'node_modules');
    await init();
    assert.equal(read('.gitignore'), 'node_modules\n.dev.vars\n');
  });

  it('adds a module of its own beside one of the same name', async () => {
    worker();
    write('src/tocsin.ts', 'export const tocsin = "alarm bell";\n');
    await init();
    assert.match(read('src/tocsin-queue.ts'), /createTocsin/);
    assert.match(read('src/index.ts'), /from '.\/tocsin-queue'/);
  });

  it('prints the lines that only a human can add, and fails', async () => {
    const main =
      'import { WorkerEntrypoint } from "cloudflare:workers";\nexport default class extends WorkerEntrypoint {}\n';
    worker(main);
    const { code, stdout, stderr } = await init();
    assert.equal(code, 1);
    assert.match(stdout, /by hand src\/index\.ts: its default export is a class/);
    assert.match(stdout, /^ {4}export default tocsin\.worker\(/m);
    assert.match(stderr, /must be added by hand: src\/index\.ts/);
    assert.equal(read('src/index.ts'), main);
  });

  it('names the line of a configuration that it cannot read, and writes nothing', async () => {
    worker(undefined, 'oops oops\n');
    const before = readdirSync(folder);
    const { code, stderr } = await init();
    assert.equal(code, 1);
    assert.match(stderr, /wrangler\.toml, line 4/);
    assert.deepEqual(readdirSync(folder), before);
  });

  it('prints the lines for a configuration', async () => {
    const { stdout } = await run('init', '--print', 'toml');
    assert.match(stdout, /^\[\[migrations\]\]\ntag = "v1"\nnew_sqlite_classes = \["QueueObject"/);
    assert.equal((await run('init', '--print', 'yaml')).code, 2);
  });

  it('prints the lines that a configuration lacks: in its format, with its next tag, flags and environments', async () => {
    const own = '[[migrations]]\ntag = "v7"\nnew_sqlite_classes = ["Cart"]\n';
    worker(undefined, own + own.replace('[[', '[[env.eu.'));
    write('wrangler.toml', read('wrangler.toml').replace('2026-04-01', '2025-10-01'));
    const { stdout } = await run('init', '--print');
    const [top, eu] = stdout.split('# env.eu\n');
    assert.match(top, /^compatibility_flags: add "enable_ctx_exports"/);
    assert.match(top, /^\[\[migrations\]\]\ntag = "v8"\nnew_sqlite_classes = \["QueueObject"/m);
    assert.match(eu, /^\[\[env\.eu\.migrations\]\]\ntag = "v8"\n/);
    assert.match((await run('init', '--print', 'jsonc')).stdout, /"tag": "v8"/);
    await init();
    assert.equal((await run('init', '--print')).stdout, 'Nothing to add: wrangler.toml has what the queue needs.\n');
  });

  it('says how to run an existing Worker, also where its dev script runs something else', async () => {
    worker();
    assert.match((await init()).stdout, /^Next:\n {2}npm install\n {2}npm run dev\n/m);
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    worker();
    write('package.json', '{"scripts":{"dev":"wrangler dev"}}');
    assert.match((await init()).stdout, /^Next:\n {2}npm install\n {2}npx tocsin dev\n/m);
  });

  it('adds the test pool to an existing Worker, unless its Vitest does not fit', async () => {
    const pool = '@cloudflare/vitest-pool-workers';
    worker();
    await init();
    const { devDependencies } = JSON.parse(read('package.json'));
    assert.match(devDependencies[pool], /^npm:@cloudflare\/vitest-plugin@/);
    assert.ok(devDependencies.vitest);
    assert.match(read('vitest.config.mts'), /configPath: '\.\/wrangler\.toml'/);
    assert.match((await init()).stdout, /^Nothing to do/);
    for (const [vitest, isAdded] of [
      ['^3.2.4', false],
      ['~4.0.18', false],
      ['^4.1.0', true],
    ]) {
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
      worker();
      write('package.json', JSON.stringify({ devDependencies: { vitest } }));
      write('vite.config.ts', 'export default {};\n');
      await init();
      assert.deepEqual(Object.keys(JSON.parse(read('package.json')).devDependencies), [
        'vitest',
        ...(isAdded ? [pool] : []),
      ]);
      assert.ok(!existsSync(join(folder, 'vitest.config.mts')));
    }
  });
});

describe('tocsin dev', () => {
  it('says where the queue is once it serves, and where its dashboard is', async () => {
    const probe = createServer().listen(0, '127.0.0.1');
    await once(probe, 'listening');
    const { port } = probe.address();
    probe.close();
    const args = ['dev', '--no-open', '--json', '--port', String(port), '--persist-to', folder];
    const dev = await start(args, { cwd: join(root, 'test/cli/worker'), env: QUIET });
    try {
      await until('the queue', 60_000, async () => dev.stdout.includes('\n'));
      const { url, dashboard } = JSON.parse(dev.stdout);
      assert.equal(url, `http://localhost:${port}`);
      const page = await fetch(dashboard, { headers: { Accept: 'text/html' } });
      assert.equal(page.status, 200);
      assert.match(await page.text(), /<title>Tocsin/);
    } finally {
      dev.child.kill('SIGINT');
      await dev.ended;
    }
  });

  it('says what is missing', async () => {
    assert.match((await run('dev')).stderr, /No wrangler configuration.*\n→ .*npx tocsin init/);
    worker();
    assert.match((await run('dev')).stderr, /wrangler is not installed/);
  });
});

describe('tocsin doctor', () => {
  const statuses = async () => {
    const { code, stdout } = await run('doctor', '--url', 'http://127.0.0.1:9', '--json');
    assert.equal(code, 1);
    return Object.fromEntries(
      JSON.parse(stdout).checks.map(({ name, status, message }) => [name, `${status} ${message}`]),
    );
  };

  it('finds what a Worker lacks, and what its wrangler does not know', async () => {
    worker(undefined, '[[migrations]]\ntag = "v1"\nnew_classes = ["QueueObject"]\n');
    const wrangler = {
      version: '4.86.0',
      bin: 'x.js',
      engines: { node: '>=20' },
      dependencies: { workerd: '1.20260101.0' },
    };
    write('node_modules/wrangler/package.json', JSON.stringify(wrangler));
    const found = await statuses();
    assert.match(found.migrations, /^fail .*QueueObject was created without SQLite/);
    assert.match(
      found.compatibility,
      /^fail 2026-04-01 is newer than the installed wrangler 4\.86\.0 supports: 2026-01-01/,
    );
    assert.match(found['main module'], /^fail src\/index\.ts is not complete/);
    assert.match(found.package, /^fail tocsin is not installed/);
    assert.match(found.server, /^fail No queue answers/);
  });

  it('is content with what init writes', async () => {
    worker();
    await init();
    const found = await statuses();
    assert.match(found.configuration, /^ok /);
    assert.match(found['main module'], /^ok /);
  });

  it('finds what an environment lacks, which init adds', async () => {
    const text =
      '[env.production]\nmain = "src/index.ts"\n\n[[env.production.migrations]]\ntag = "v1"\n\n[vars]\nA = "b"\n';
    worker(undefined, text);
    await init();
    write('wrangler.toml', read('wrangler.toml').replace(/new_sqlite_classes.*\n$/, ''));
    const found = await statuses();
    assert.match(
      found.migrations,
      /^fail env\.production of wrangler\.toml has no migration and no entry in exports for QueueObject, Dir/,
    );
    assert.match(found.environment, /^warn env\.production of wrangler\.toml has no vars/);
    await init();
    assert.match((await statuses()).configuration, /^ok .*also in env\.production/);
  });

  it('names variables that are misspelt, and keys and logins that cannot be read', async () => {
    worker(undefined, '[vars]\nAPI_KEY = "k"\n');
    assert.match((await statuses()).variables, /^warn wrangler\.toml: .*API_KEY is not known.*API_KEYS/);
    worker();
    write('.dev.vars', 'API_KEYS=[{"key":"sesame","rolle":"viewer"}]\n');
    const { variables } = await statuses();
    assert.match(variables, /^fail \.dev\.vars: API_KEYS: entry 0 has an unknown member.*"role"/);
    assert.doesNotMatch(variables, /sesame/);
    const login = { issuer: 'https://id.example', audience: 'a', roles: { claim: 'groups', viewer: ['*'] } };
    const set = (given) => write('.dev.vars', `LOGIN='${JSON.stringify(given)}'\n`);
    set({ ...login, role: {} });
    assert.match((await statuses()).variables, /^fail \.dev\.vars: LOGIN: .*"roles"/);
    set({ ...login, client_id: 'its secret is no variable' });
    assert.equal((await statuses()).variables, undefined);
    set({ ...login, roles: { claim: 'client_id', viewer: ['*'] } });
    assert.equal((await statuses()).variables, undefined);
  });

  it('looks at the queue alone where there is no project', async () => {
    assert.deepEqual(Object.keys(await statuses()), ['server']);
  });
});
