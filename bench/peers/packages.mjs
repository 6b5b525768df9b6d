/** The peers' packages, of exactly the versions in `package-lock.json` beside this file, in a temporary folder for the run. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { discard, scratch } from '../load/scratch.mjs';

const FILES = ['package.json', 'package-lock.json'];

/** Installs them. @returns the folder, and how to remove it; or the `problem` */
export function installPeers() {
  const directory = scratch('tocsin-peers-');
  for (const file of FILES) copyFileSync(fileURLToPath(new URL(file, import.meta.url)), join(directory, file));
  // Not `npm ci`: it refuses a lock without the binaries of platforms that a registry does not have.
  const args = ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', directory];
  const { status, stderr, error } = spawnSync('npm', args, { cwd: directory, encoding: 'utf8', timeout: 180_000 });
  if (status === 0) return { directory, remove: () => discard(directory) };
  discard(directory);
  return { problem: `npm could not install the peers: ${error?.message ?? stderr.trim().split('\n').at(-1)}` };
}

/** The version that was installed. */
export function versionOf(directory, name) {
  return JSON.parse(readFileSync(join(directory, 'node_modules', name, 'package.json'), 'utf8')).version;
}
