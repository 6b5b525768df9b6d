// The audit log: who changed what.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { assertSound, dashboard, KEYS } from './support/index.mjs';

describe('the audit page', { timeout: 900_000 }, () => {
  const board = dashboard();
  before(async () => {
    const as = (role, ...request) => board.callClosed(KEYS[role], ...request);
    for (let n = 0; n < 3; n++) {
      await as('operator', 'POST', 'jobs', { type: 'wait.for.worker', args: [n], queue: 'audit.a' });
    }
    await as('operator', 'POST', 'admin/queues/audit.a/pause');
    await as('admin', 'POST', 'admin/queues/audit.a/resume');
    await as('operator', 'POST', 'admin/jobs/bulk/cancel', { filter: { queue: 'audit.a' }, confirm: true });
  });
  const row = (page, text) => page.getByRole('row').filter({ hasText: text });

  it('tells who did what to how many, and keeps its filters in the URL', async () => {
    const page = await board.newPage('/ui/audit?queue=audit.a', { key: KEYS.viewer });
    await page.getByText('kept for 90 days').waitFor();
    const cancelled = row(page, 'jobs.cancel');
    await cancelled.getByText('operator of tests').waitFor();
    await cancelled.getByText('queue: audit.a').waitFor();
    await cancelled.getByText('3', { exact: true }).waitFor();
    await page.getByLabel('What').selectOption('queue.*');
    await cancelled.waitFor({ state: 'detached' });
    await row(page, 'queue.pause').waitFor();
    await page.getByRole('searchbox', { name: /^Name of a key/ }).fill('admin of tests');
    await row(page, 'queue.pause').waitFor({ state: 'detached' });
    await row(page, 'queue.resume').waitFor();
    assert.match(page.url(), /queue=audit.a.*action=queue.*actor=admin\+of\+tests/);
    await page.getByRole('link', { name: 'Remove the filter What queue.*' }).click();
    await page.getByLabel('Since').selectOption('1h');
    await row(page, 'queue.resume').waitFor();
    await page.getByRole('searchbox', { name: /^Name of a key/ }).fill('nobody');
    await page.getByRole('heading', { name: 'No matches' }).waitFor();
  });

  it('opens an entry, also from its URL, and leads to what was changed', async () => {
    const page = await board.newPage('/ui/audit?queue=audit.a', { key: KEYS.viewer });
    await page.getByRole('link', { name: 'jobs.cancel' }).click();
    const drawer = page.getByRole('dialog', { name: 'jobs.cancel' });
    await drawer.getByText('"audit.a"').waitFor();
    await page.reload();
    await drawer.getByText('"audit.a"').waitFor();
    await page.keyboard.press('Escape');
    await row(page, 'queue.pause').getByRole('link', { name: 'audit.a' }).click();
    await page.waitForURL('**/ui/queues/audit.a');
  });

  it('is sound in both themes, wide or narrow', async () => {
    const page = await board.newPage('/ui/audit?queue=audit.a', { key: KEYS.viewer });
    await row(page, 'jobs.cancel').waitFor();
    await assertSound(page);
    await page.getByRole('link', { name: 'jobs.cancel' }).click();
    await page.getByRole('dialog', { name: 'jobs.cancel' }).waitFor();
    await assertSound(page);
  });
});
