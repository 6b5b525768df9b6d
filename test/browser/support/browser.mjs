/**
 * One browser for all files of tests. On Linux it comes from npm, packed; it is unpacked once into the temporary folder. Elsewhere
 * it is the Chrome of the system.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { chromium } from 'playwright-core';

/** @returns {Promise<import('playwright-core').Browser>} */
export async function launchBrowser() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return await chromium.launch({ channel: 'chrome' });
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--font-render-hinting=none'];
  return await chromium.launch({ executablePath: await unpacked(), args });
}

/** The browser's file. Unpacked beside its place and then moved there, because another run may look for it meanwhile. */
async function unpacked() {
  const { default: packed } = await import('@sparticuz/chromium');
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium');
  const { version } = createRequire(import.meta.url)(join(dirname(dirname(entry)), 'package.json'));
  const folder = join(tmpdir(), `tocsin-chromium-${version}`);
  const file = join(folder, 'chromium');
  if (existsSync(file)) return file;
  const own = mkdtempSync(join(tmpdir(), 'tocsin-chromium-'));
  const { TMPDIR } = process.env;
  try {
    // It unpacks into the temporary folder, under names that it shares with nobody here.
    process.env.TMPDIR = own;
    await packed.executablePath();
  } finally {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  }
  try {
    mkdirSync(dirname(folder), { recursive: true });
    renameSync(own, folder);
  } catch (error) {
    rmSync(own, { recursive: true, force: true });
    if (!existsSync(file)) throw error;
  }
  return file;
}
