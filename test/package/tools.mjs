/** The tools that judge packages and workflows, installed in a folder of their own at the versions of `tools/package-lock.json`. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../docs/dev.mjs';

let installed;

/** Installs them, once for all files of tests, which run in one process. @returns {string} the folder */
export function installTools() {
  if (installed) return installed;
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-tools-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const file of ['package.json', 'package-lock.json'])
    cpSync(join(root, 'test/package/tools', file), join(folder, file));
  ok('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: folder });
  installed = folder;
  return installed;
}

/** The program of a tool. @param {string} name */
export const tool = (name) => join(installTools(), 'node_modules/.bin', name);

/** The module of a tool. @param {string} name */
export const requireTool = (name) => createRequire(join(installTools(), 'package.json'))(name);

/**
 * Runs a command as a user or a workflow does: without the settings that npm hands to what it runs, nor those of a workflow.
 * @returns what it printed and its status
 */
export function run(command, args, { cwd = tmpdir(), env = {} } = {}) {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(npm_(?!config_cache)|INIT_CWD|GITHUB_)/.test(name),
  );
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env: { ...Object.fromEntries(inherited), NO_COLOR: '1', ...env },
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error) throw error;
  return { status, stdout, output: `${stdout}${stderr}` };
}

/** Runs a command that must succeed. @returns what it printed */
export function ok(command, args, options) {
  const { status, stdout, output } = run(command, args, options);
  assert.equal(status, 0, output);
  return stdout;
}
