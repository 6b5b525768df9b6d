/**
 * After `npm pack`: packs the tarball anew without the scripts, which are about the checkout and cannot run without it. What
 * `npm publish` alone sends has them; so a release is `npm publish $(npm pack)`.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { repositoryOf } from './repository.mjs';

const { npm_execpath, npm_config_pack_destination: destination = '.', INIT_CWD: cwd = '.' } = process.env;
const root = join(import.meta.dirname, '..');
const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const file = `${name}-${version}.tgz`;
const tarball = resolve(cwd, destination, file);

// A dry run writes none.
if (existsSync(tarball)) {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-postpack-'));
  try {
    const out = join(folder, 'out');
    mkdirSync(out);
    execFileSync('tar', ['-xzf', tarball, '-C', folder]);
    const path = join(folder, 'package/package.json');
    const { scripts: _, ...manifest } = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, `${JSON.stringify({ ...manifest, ...repositoryOf(process.env) }, undefined, 2)}\n`);
    const pack = ['pack', join(folder, 'package'), '--silent', '--pack-destination', out];
    execFileSync(process.execPath, [npm_execpath, ...pack], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
    copyFileSync(join(out, file), tarball);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
