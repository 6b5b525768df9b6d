/**
 * `npm run docs`: builds the site of the documents into docs/.site/dist/site, as static files. It installs what that takes
 * beside itself, where an install of the project leaves it out.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { stage } from './stage.mjs';

const here = import.meta.dirname;
const npm = process.env.npm_execpath;
if (!npm) {
  console.error('Run this as npm run docs.');
  process.exit(2);
}

const { devDependencies } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));
const installed = join(here, 'node_modules/vitepress/package.json');
if (!existsSync(installed) || JSON.parse(readFileSync(installed, 'utf8')).version !== devDependencies.vitepress) {
  execFileSync(process.execPath, [npm, 'ci', '--prefer-offline', '--no-audit', '--no-fund'], {
    cwd: here,
    stdio: 'inherit',
  });
}

rmSync(join(here, 'dist'), { recursive: true, force: true });
stage(join(here, 'dist/pages'));
// A program of its own: it reads the configuration with the modules that were just installed. A dead link fails it.
const vitepress = [join(here, 'node_modules/vitepress/bin/vitepress.js'), 'build', here];
process.exitCode = spawnSync(process.execPath, vitepress, { stdio: 'inherit' }).status ?? 1;
if (process.exitCode === 0) {
  console.log('\nThe site is in docs/.site/dist/site. See it at http://localhost:4173 with:');
  console.log('  docs/.site/node_modules/.bin/vitepress preview docs/.site');
}
