// The frame of the dashboard: its menu, its URLs, its keys, its theme.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { assertAccessible, assertNoSideways, dashboard, KEYS } from './support/index.mjs';

describe('the dashboard', { timeout: 900_000 }, () => {
  const board = dashboard();
  before(async () => {
    for (const queue of ['mail', 'reports', 'keys.a', 'keys.b']) {
      await board.call('POST', 'jobs', { type: 'wait.for.worker', args: [{ n: 1 }], queue });
    }
  });

  const heading = (page, name) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor();

  it('is where a browser that opens the root is led, and its menu leads to every page', async () => {
    const page = await board.newPage('/');
    await page.waitForURL('**/ui');
    const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
    await links.first().waitFor();
    const names = await links.locator('span:first-of-type').allTextContents();
    assert.ok(names.length >= 12, names.join());
    for (const name of names) {
      await links.filter({ hasText: name }).click();
      await heading(page, name);
      assert.equal(await page.title(), `${name} · Tocsin`);
      assert.equal(await page.locator('#menu [aria-current=page] span').first().textContent(), name);
    }
  });

  it('opens at the URL of any page, and goes back to what was seen before', async () => {
    const page = await board.newPage('/ui/queues?name=mai&sort=name');
    await page.getByRole('link', { name: 'mail', exact: true }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'reports', exact: true }).count(), 0);
    await page.getByRole('link', { name: 'Remove the filter Name mai' }).click();
    await page.getByRole('link', { name: 'reports', exact: true }).waitFor();
    assert.match(page.url(), /\/ui\/queues\?sort=name$/);
    await page.getByRole('link', { name: 'Events' }).click();
    await heading(page, 'Events');
    await page.goBack();
    await heading(page, 'Queues');
    await page.goBack();
    await page.getByRole('link', { name: 'Remove the filter Name mai' }).waitFor();
    assert.equal(await page.getByRole('searchbox', { name: 'Filter by name' }).inputValue(), 'mai');
    await page.goForward();
    await page.getByRole('link', { name: 'reports', exact: true }).waitFor();
  });

  it('says so where there is no such page', async () => {
    const page = await board.newPage('/ui/nothing/here');
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    await page.getByRole('link', { name: 'To the overview' }).click();
    await heading(page, 'Overview');
  });

  it('is worked with keys, and lists them', async () => {
    const page = await board.newPage('/ui/queues?name=keys&sort=name');
    await page.getByRole('link', { name: 'keys.b', exact: true }).waitFor();
    await page.keyboard.press('?');
    const help = page.getByRole('dialog', { name: 'Keys' });
    await help.getByText('Next row').waitFor();
    await assertAccessible(page);
    await page.keyboard.press('Escape');
    await help.waitFor({ state: 'detached' });
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await page.keyboard.press('k');
    await page.keyboard.press('Enter');
    // The heading also says when no handler takes the jobs.
    await page.getByRole('heading', { name: /^keys\.a\b/, level: 1 }).waitFor();
    assert.match(page.url(), /\/ui\/queues\/keys\.a$/);
    await page.keyboard.press('Escape');
    await heading(page, 'Queues');
    await page.keyboard.press('g');
    await page.keyboard.press('e');
    await heading(page, 'Events');
    await page.keyboard.press('/');
    // Typed into the search, where keys are letters.
    await page.keyboard.type('g q?');
    await page.keyboard.press('Enter');
    await heading(page, 'Jobs');
    assert.match(page.url(), /\/ui\/jobs\?q=g\+q%3F$/);
  });

  it('keeps the theme that is chosen', async () => {
    const page = await board.newPage('/ui/queues', { theme: 'light' });
    const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await ground();
    await page.getByRole('button', { name: /^Theme: auto/ }).click();
    await page.getByRole('button', { name: /^Theme: light/ }).click();
    await page.getByRole('button', { name: /^Theme: dark/ }).waitFor();
    const dark = await ground();
    assert.notEqual(dark, light);
    await page.reload();
    assert.equal(await ground(), dark);
  });

  it('asks for a key where one is needed, then shows the page that was asked for, until one signs out', async () => {
    const page = await board.newPage('/ui/queues', { closed: true });
    const key = page.getByLabel('API key');
    await key.fill('no-key-of-this-server');
    await assertAccessible(page);
    await page.keyboard.press('Enter');
    await page.getByText('This API key is not known.').waitFor();
    await key.fill(KEYS.operator);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await heading(page, 'Queues');
    await page.locator('main :is(table, .empty)').first().waitFor();
    // The scripts of the page cannot read it.
    assert.equal(await page.evaluate(() => document.cookie), '');
    await page.reload();
    await page.getByText('operator of tests').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await key.waitFor();
    await page.reload();
    await key.waitFor();
  });

  it('shows no action to a key that may only read', async () => {
    await board.callClosed(KEYS.operator, 'POST', 'jobs', { type: 'wait.for.worker', args: [], queue: 'roles' });
    for (const [role, buttons] of [
      ['viewer', 0],
      ['operator', 1],
    ]) {
      const page = await board.newPage('/ui/queues?name=roles', { key: KEYS[role] });
      await page.getByRole('link', { name: 'roles', exact: true }).waitFor();
      assert.equal(await page.getByRole('button', { name: 'Pause', exact: true }).count(), buttons, role);
    }
  });

  for (const path of ['queues', 'events', 'settings']) {
    it(`has nothing on ${path} that axe finds wrong, in both themes, wide or narrow`, async () => {
      const page = await board.newPage(`/ui/${path}`);
      await page.locator('main :is(table, .empty)').first().waitFor();
      const soundInBoth = async () => {
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          await assertAccessible(page);
        }
      };
      await soundInBoth();
      await page.setViewportSize({ width: 360, height: 740 });
      await assertNoSideways(page);
      await page.getByRole('button', { name: 'Menu' }).click();
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Workers' }).waitFor();
      await soundInBoth();
    });
  }
});
