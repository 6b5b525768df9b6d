// Failures in groups: what they are, how they change, and what can be done to all jobs of one.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { assertAccessible, assertNoSideways, dashboard, KEYS } from './support/index.mjs';
import { SOON_MS } from './support/pages.mjs';
import { puller } from './support/pull.mjs';

describe('the failures page', { timeout: 900_000 }, () => {
  const board = dashboard();
  const worker = puller((...request) => board.call(...request));
  const live = (page) => page.getByRole('button', { name: /^Live updates: Live/ }).waitFor();
  const rowOf = (page, text) =>
    page.getByRole('table', { name: 'Failures' }).locator('tbody tr').filter({ hasText: text });
  const counts = async (queue) => (await board.call('GET', `admin/jobs?queue=${queue}&counts=true`)).counts;

  before(async () => {
    for (const box of [17, 18, 19]) {
      const error = {
        type: 'SmtpError',
        message: `Mailbox ${box} is full`,
        stack: `SmtpError: Mailbox ${box}\n    at send`,
      };
      await worker.dead('fail.grouped', error, { type: 'mail.send' });
    }
    await worker.dead(
      'fail.grouped',
      { type: 'TypeError', message: '<b>x</b> is undefined' },
      { type: 'report.build' },
    );
  });

  it('puts jobs with the same error together, filtered by the URL, and opens a group in a drawer', async () => {
    const page = await board.newPage('/ui/failures?queue=fail.grouped');
    const group = rowOf(page, /Mailbox \d+ is full/);
    await group.getByText('3 dead').waitFor();
    await rowOf(page, '<b>x</b> is undefined').getByText('1 dead').waitFor();
    await group.getByRole('link').first().click();
    await page.waitForURL('**/ui/failures?queue=fail.grouped&group=*');
    const drawer = page.getByRole('dialog', { name: 'Failures' });
    await drawer.getByText(/^SmtpError: Mailbox \d+\s+at send/).waitFor();
    await page.reload();
    await drawer.getByText('mail.send').waitFor();
    await drawer.getByRole('link', { name: 'Show the jobs' }).click();
    await page.waitForURL('**/ui/jobs?fingerprint=*&queue=fail.grouped');
    await page.locator('table[aria-label=Jobs] tbody tr').nth(2).waitFor();
    assert.equal(await page.locator('table[aria-label=Jobs] tbody tr').count(), 3);
    await page.goBack();
    await drawer.waitFor();
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'detached' });
    assert.match(page.url(), /\/ui\/failures\?queue=fail\.grouped$/);
    await page.getByRole('searchbox', { name: 'Type' }).fill('report.*');
    await group.waitFor({ state: 'detached' });
    await page.getByLabel('State').selectOption('retrying');
    await page.getByRole('heading', { name: 'No matching failures' }).waitFor();
    await page.getByRole('button', { name: 'Show all failures' }).click();
    await page.waitForURL('**/ui/failures');
  });

  it('titles a group by a message of it, tells intended ends apart, and shows own frames first', async () => {
    const stack =
      'Error: no rate\n    at rate (src/rates.ts:7:3)\n    at run (node_modules/tocsin/dist/handler/index.js:9:9)';
    await worker.dead('fail.titled', { type: 'Error', message: 'no rate for "welcome"', stack }, { type: 'rate.find' });
    await worker.dead('fail.titled', { type: 'Gone', code: 'DISCARD', message: 'user 7 left' }, { type: 'user.mail' });
    const page = await board.newPage('/ui/failures?queue=fail.titled');
    const crash = rowOf(page, 'no rate for "welcome"');
    await crash.waitFor();
    assert.doesNotMatch(await page.locator('main').innerText(), /<text>|<n>/);
    const intended = rowOf(page, 'user 7 left');
    await intended.getByText('intended', { exact: true }).waitFor();
    assert.equal(await crash.getByText('intended', { exact: true }).count(), 0);
    const colour = (row) =>
      row
        .locator('strong')
        .first()
        .evaluate((title) => getComputedStyle(title).color);
    assert.notEqual(await colour(intended), await colour(crash));
    await crash.getByRole('link').first().click();
    const drawer = page.getByRole('dialog', { name: 'Failures' });
    await drawer.getByText('no rate for <text>').waitFor();
    await drawer.getByText('src/rates.ts:7:3').first().waitFor();
    assert.equal(await drawer.getByText('node_modules/tocsin').isVisible(), false);
    await drawer.getByText('With 1 frame of libraries').click();
    await drawer.getByText('node_modules/tocsin').waitFor();
  });

  it('redrives a group, after showing how many jobs that are', async () => {
    for (const box of [1, 2]) await worker.dead('fail.redrive', { type: 'SmtpError', message: `Box ${box} is full` });
    await worker.dead('fail.redrive', { type: 'Other', message: 'something else' });
    const page = await board.newPage('/ui/failures?queue=fail.redrive');
    await Promise.all([
      live(page),
      rowOf(page, /Box \d+ is full/)
        .getByText('2 dead')
        .waitFor(),
    ]);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    const drawer = page.getByRole('dialog', { name: 'Failures' });
    await drawer.getByRole('button', { name: 'Redrive 2' }).click();
    await page.getByRole('dialog', { name: 'Redrive 2 jobs?' }).getByText('In queue fail.redrive').waitFor();
    await page.getByRole('button', { name: 'Redrive 2 jobs' }).click();
    await page.getByText('2 jobs redriven.').waitFor();
    await drawer.getByRole('heading', { name: 'No failures left' }).waitFor();
    const { available, discarded } = await counts('fail.redrive');
    assert.deepEqual({ available, discarded }, { available: 2, discarded: 1 });
  });

  it('discards a group once the number was typed', async () => {
    for (const box of [1, 2]) await worker.dead('fail.discard', { type: 'SmtpError', message: `Box ${box} is full` });
    const page = await board.newPage('/ui/failures?queue=fail.discard');
    await rowOf(page, /Box \d+ is full/)
      .getByRole('link')
      .first()
      .click();
    await page.getByRole('dialog', { name: 'Failures' }).getByRole('button', { name: 'Discard' }).click();
    const asked = page.getByRole('dialog', { name: 'Discard 2 jobs?' });
    await asked.getByRole('textbox').fill('2');
    await assertAccessible(page);
    await asked.getByRole('button', { name: 'Discard 2 jobs' }).click();
    await page.getByText('2 jobs deleted permanently.').waitFor();
    assert.equal((await counts('fail.discard')).discarded, 0);
  });

  it('counts what fails meanwhile where it stands, and tells of new groups', async () => {
    await worker.dead('fail.live', { type: 'SmtpError', message: 'Box 1 is full' });
    const page = await board.newPage('/ui/failures?queue=fail.live');
    await Promise.all([
      live(page),
      rowOf(page, /Box \d+ is full/)
        .getByText('1 dead')
        .waitFor(),
    ]);
    await worker.dead('fail.live', { type: 'SmtpError', message: 'Box 2 is full' });
    await rowOf(page, /Box \d+ is full/)
      .getByText('2 dead')
      .waitFor({ timeout: SOON_MS });
    await worker.dead('fail.live', { type: 'Brand new', message: 'never seen before' });
    await page.getByRole('button', { name: '1 newer' }).click();
    await rowOf(page, 'never seen before').waitFor();
  });

  it('offers nothing to a key that may only read, which the server refuses as well', async () => {
    const closed = puller((...request) => board.callClosed(KEYS.admin, ...request));
    await closed.dead('fail.viewer', { type: 'SmtpError', message: 'Box 1 is full' });
    const page = await board.newPage('/ui/failures?queue=fail.viewer', { key: KEYS.viewer });
    const row = rowOf(page, /Box \d+ is full/);
    await row.waitFor();
    assert.equal(await row.getByRole('button').count(), 0);
    await row.getByRole('link').first().click();
    const drawer = page.getByRole('dialog', { name: 'Failures' });
    await drawer.getByRole('link', { name: 'Show the jobs' }).waitFor();
    assert.equal(await drawer.getByRole('button', { name: /Redrive|Discard/ }).count(), 0);
    const fingerprint = new URL(page.url()).searchParams.get('group');
    for (const verb of ['redrive', 'discard']) {
      const path = `admin/failures/${fingerprint}/${verb}`;
      await assert.rejects(board.callClosed(KEYS.viewer, 'POST', path, { confirm: true }), /: 403 /);
    }
  });

  it('says what went wrong, and tries again', async () => {
    let isDown = true;
    const page = await board.newPage('/ui/failures?queue=fail.grouped', {
      expect: /ERR_FAILED/,
      prepare: (fresh) => fresh.route(/\/admin\/failures/, (route) => (isDown ? route.abort() : route.continue())),
    });
    await page.getByText('The server cannot be reached.').waitFor();
    isDown = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await rowOf(page, /Mailbox \d+ is full/).waitFor();
  });

  it('has nothing that axe finds wrong, in both themes, wide or narrow', async () => {
    const page = await board.newPage('/ui/failures?queue=fail.grouped', { theme: 'light' });
    await rowOf(page, /Mailbox \d+ is full/).waitFor();
    await assertAccessible(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await assertAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await assertNoSideways(page);
    await rowOf(page, /Mailbox \d+ is full/)
      .getByRole('link')
      .first()
      .click();
    await page.getByText(/^SmtpError: Mailbox/).waitFor();
    await assertAccessible(page);
  });
});
