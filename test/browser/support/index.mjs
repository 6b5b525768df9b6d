/**
 * What tests of the dashboard share: the servers, the browser, pages that notice every error of theirs.
 *
 *     const { open, newPage, call } = dashboard();
 *     it('shows…', async () => {
 *       const page = await newPage('/ui/queues');
 *       await page.getByRole('heading', { name: 'Queues' }).waitFor();
 *     });
 */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, afterEach, before } from 'node:test';
import { launchBrowser } from './browser.mjs';
import { startServers } from './server.mjs';

export { KEYS } from './server.mjs';

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Longest wait for something on a page, in ms. */
const WAIT_MS = 60_000;

/** Started by the first file that needs it; all files run in one process. */
let shared;
let users = 0;

async function start() {
  const servers = await startServers();
  try {
    return { servers, browser: await launchBrowser() };
  } catch (error) {
    await servers.stop();
    throw error;
  }
}

/** Declares that this file's tests need the dashboard. */
export function dashboard() {
  const held = {};
  const contexts = [];
  users++;
  before(async () => {
    shared ??= start();
    Object.assign(held, await shared);
  });
  afterEach(async () => {
    const problems = contexts.flatMap(({ problems: found }) => found);
    await Promise.all(contexts.splice(0).map(({ context }) => context.close()));
    assert.deepEqual(problems, []);
  });
  after(async () => {
    if (--users > 0) return;
    const { servers, browser } = held;
    await Promise.all([browser?.close(), servers?.stop()]);
    shared = undefined;
  });

  return {
    /** Base URL of the server that asks nobody for a key. */
    get open() {
      return held.servers.open;
    },
    /** Base URL of the server that asks for one of {@link KEYS}. */
    get closed() {
      return held.servers.closed;
    },
    /**
     * Opens a page in a browser of its own. A message of an error in its console, as about a broken content policy, fails the test.
     * @param {string} path with `/ui` before it
     * @param {object} [options]
     * @param {'light' | 'dark'} [options.theme] of the system
     * @param {number} [options.width] of the window
     * @param {string} [options.key] signs in at the server that asks for keys
     * @param {boolean} [options.closed] opens it at that server, without a key
     * @param {boolean} [options.people] opens it at the server whose people log in at an identity provider
     * @param {RegExp} [options.expect] messages of errors that belong to the test
     * @param {(page: import('playwright-core').Page) => Promise<void>} [options.prepare] before the page is loaded
     */
    async newPage(path, { theme = 'light', width = 1280, key, closed = false, people = false, expect, prepare } = {}) {
      const { servers } = held;
      const base = people ? servers.people : key || closed ? servers.closed : servers.open;
      const context = await held.browser.newContext({
        baseURL: base,
        colorScheme: theme,
        // Of the system, where it may be no name of a language.
        locale: 'en-US',
        viewport: { width, height: 800 },
        reducedMotion: 'reduce',
        permissions: ['clipboard-read', 'clipboard-write'],
      });
      context.setDefaultTimeout(WAIT_MS);
      if (key) await context.addCookies([{ name: 'tocsin_key', value: key, url: base }]);
      const problems = [];
      contexts.push({ context, problems });
      const page = await context.newPage();
      const note = (message) => expect?.test(message) || problems.push(message);
      page.on('console', (message) => {
        // What the API refuses is the page's to show, and the test's to look at.
        const isRefusal =
          /^Failed to load resource/.test(message.text()) && message.location().url.includes('/ojs/v1/');
        if (message.type() === 'error' && !isRefusal) note(message.text());
      });
      page.on('pageerror', (error) => note(String(error)));
      await prepare?.(page);
      await page.goto(path);
      return page;
    },
    /** A request to the API of the open server that must succeed; its answer. */
    call: (method, path, body) => request(held.servers.open, method, path, body),
    /** As `call`, of the server whose people log in, with a key. */
    callPeople: (key, method, path, body) => request(held.servers.people, method, path, body, key),
    /** As `call`, of the server that asks for keys. */
    callClosed: (key, method, path, body) => request(held.servers.closed, method, path, body, key),
  };
}

async function request(base, method, path, body, key) {
  const response = await fetch(`${base}/ojs/v1/${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...(key && { Authorization: `Bearer ${key}` }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

/** Fails when axe-core finds a violation on what the page shows now. */
export async function assertAccessible(page) {
  // Through the debugger, which the page's policy does not bind.
  if (!(await page.evaluate(() => 'axe' in window))) {
    const { readFile } = await import('node:fs/promises');
    await page.evaluate(await readFile(axePath, 'utf8'));
  }
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  assert.deepEqual(
    violations.map(
      ({ id, impact, nodes }) =>
        `${impact} ${id}: ${nodes.map(({ html, any }) => `${html} ${any.map(({ message }) => message)}`).join(' | ')}`,
    ),
    [],
  );
}

/** Nothing is wider than the window. */
export async function assertNoSideways(page) {
  const [wanted, given] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert.ok(wanted <= given, `The page is ${wanted} px wide in a window of ${given} px.`);
}

/** What a page shows now is sound: in both themes, in a wide window and on a phone. Leaves the page as a light one in a wide window. */
export async function assertSound(page) {
  await assertAccessible(page);
  const before = page.viewportSize();
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize({ width: 360, height: 740 });
  await assertAccessible(page);
  await assertNoSideways(page);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(before);
}
