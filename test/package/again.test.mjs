// Who works on a checkout and on a project that uses it packs, installs, changes the code, packs and installs again.
import assert from 'node:assert/strict';
import { execFileSync, execSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { after, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const folder = mkdtempSync(join(tmpdir(), 'tocsin-again-'));
const checkout = join(folder, 'tocsin');
const project = join(folder, 'project');
after(() => rmSync(folder, { recursive: true, force: true }));

const NOT_TRACKED = new Set(['node_modules', 'dist', '.git', '.wrangler']);

/** The line of the README, as it stands there. */
const LINE = /^npm install .*$/m.exec(readFileSync(join(root, 'README.md'), 'utf8'))[0];

/** Installs the checkout with that line. @returns the installed version, and what the installed code exports */
function install() {
  execSync(LINE, {
    cwd: project,
    env: { ...process.env, npm_config_prefer_offline: 'true', npm_config_audit: 'false' },
  });
  const { version } = JSON.parse(readFileSync(join(project, 'node_modules/tocsin/package.json'), 'utf8'));
  const script = "import('tocsin/client').then(({ MARK }) => console.log(MARK))";
  return { version, mark: execFileSync(process.execPath, ['-e', script], { cwd: project, encoding: 'utf8' }).trim() };
}

it('a checkout that is packed again after a change is installed again, one that has not changed is the same', () => {
  cpSync(root, checkout, { recursive: true, filter: (path) => !NOT_TRACKED.has(basename(path)) });
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'), 'dir');
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{"name":"project","private":true,"type":"module"}');

  const source = join(checkout, 'src/client/index.ts');
  appendFileSync(source, "\nexport const MARK: string = 'first';\n");
  const first = install();
  assert.equal(first.mark, 'first');
  assert.match(first.version, /^\d+\.\d+\.\d+-g[0-9a-f]{8}$/);
  assert.deepEqual(install(), first);

  writeFileSync(source, readFileSync(source, 'utf8').replace("'first'", "'second'"));
  const second = install();
  assert.equal(second.mark, 'second');
  assert.notEqual(second.version, first.version);
});
