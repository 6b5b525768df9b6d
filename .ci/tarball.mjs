/**
 * `npm run pack`: packs what the checkout holds now, under a version of its own such as 0.2.0-g3f9a01c2. The version is
 * made from the content, so a project that installs the tarball gets this code and not an earlier one with the same
 * name. Tells the file's name. `npm pack` alone is for a release: `npm publish $(npm pack)`. Arguments go to npm: `npm run pack -- --pack-destination ..`
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

// `npm run pack` has run `prepack`, which builds, unless scripts around scripts are turned off.
const { npm_lifecycle_event: script, npm_config_ignore_scripts: isAlone } = process.env;
if (script !== 'pack' || isAlone === 'true') await import('./pack.mjs');

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const { scripts: _, ...manifest } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const packed = [...manifest.files, 'LICENSE', 'README.md'].filter((name) => existsSync(join(root, name)));

const hash = createHash('sha256').update(JSON.stringify(manifest));
for (const file of packed.flatMap(filesOf).sort()) hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
const version = `${manifest.version}-g${hash.digest('hex').slice(0, 8)}`;

const folder = mkdtempSync(join(tmpdir(), 'tocsin-tarball-'));
try {
  for (const name of packed) cpSync(join(root, name), join(folder, name), { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ ...manifest, version }, undefined, 2)}\n`);
  // npm as a script, because Windows has it as a batch file, which only a shell runs.
  const npm = [process.env.npm_execpath, 'pack', folder, '--silent', ...process.argv.slice(2)];
  execFileSync(process.execPath, npm, { cwd: root, stdio: 'inherit' });
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** The files at and below a path of the project. */
function filesOf(path) {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path)).flatMap((name) => filesOf(`${path}/${name}`));
}
