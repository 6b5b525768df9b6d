// Schedules: seen, made, changed, run, stopped.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { assertAccessible, assertSound, dashboard, KEYS } from './support/index.mjs';

describe('the schedules page', { timeout: 900_000 }, () => {
  const board = dashboard();
  const cron = (name, expression, timezone, arg = {}) =>
    board.call('POST', 'cron', {
      ...{ name, expression, timezone, overlap_policy: 'allow' },
      job_template: { type: 'work.do', args: [arg], options: { queue: 'schedules.all' } },
    });
  before(async () => {
    await cron('sched-nightly', '0 2 * * MON-FRI', 'America/New_York');
    await cron('sched-runs', '@yearly', 'UTC');
    await cron('sched-stops', '0 6 1 * *', 'UTC');
  });
  const row = (page, name) => page.getByRole('row').filter({ hasText: name });

  it('says when each fires, filters, and opens one from its URL', async () => {
    const page = await board.newPage('/ui/schedules?q=sched-&sort=name');
    const nightly = row(page, 'sched-nightly');
    await nightly.getByText('Monday to Friday at 02:00').waitFor();
    await nightly.getByText('America/New_York').waitFor();
    await page.getByRole('link', { name: 'sched-nightly' }).click();
    const drawer = page.getByRole('dialog', { name: 'sched-nightly' });
    const runs = drawer.getByRole('table', { name: 'Next runs' });
    await runs.getByRole('columnheader', { name: 'In America/New_York' }).waitFor();
    assert.equal(await runs.locator('tbody tr').count(), 5);
    // Two in the morning there, at another time here.
    assert.match(await runs.locator('tbody tr').first().innerText(), /, 02:00\t[\s\S]*, 0[67]:00\t/);
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'detached' });
    assert.match(page.url(), /\/ui\/schedules\?q=sched-&sort=name$/);
    await page.goBack();
    await drawer.waitFor();
    await page.goBack();
    await page.getByRole('searchbox', { name: /Filter by name/ }).fill('stops');
    await row(page, 'sched-nightly').waitFor({ state: 'detached' });
    assert.match(page.url(), /q=stops/);
  });

  it('runs one now, and shows how it went, as it happens', async () => {
    const page = await board.newPage('/ui/schedules?q=sched-runs&open=sched-runs');
    const drawer = page.getByRole('dialog', { name: 'sched-runs' });
    await drawer.getByText('No runs yet').waitFor();
    await drawer.getByRole('button', { name: 'Run now' }).click();
    await page.getByRole('dialog', { name: 'Run sched-runs now?' }).getByRole('button', { name: 'Run now' }).click();
    await page.getByRole('link', { name: 'Open the job' }).waitFor();
    await drawer.getByText(/^1 completed/).waitFor();
    // By somebody else, too.
    await board.call('PATCH', 'cron/sched-runs', {
      job_template: { type: 'work.do', args: [{ fail: 'no', final: true }], options: { queue: 'schedules.all' } },
    });
    await board.call('POST', 'cron/sched-runs/trigger');
    await drawer.getByText(/^1 completed, 1 failed/).waitFor();
    await drawer
      .getByRole('listitem')
      .getByRole('link', { name: /^discarded/ })
      .click();
    await page.waitForURL(/\/ui\/jobs\//);
  });

  it('pauses and resumes by button and by key', async () => {
    const page = await board.newPage('/ui/schedules?q=sched-stops');
    const stops = row(page, 'sched-stops');
    await stops.getByRole('button', { name: 'Pause sched-stops' }).click();
    await stops.getByText('paused').waitFor();
    assert.equal((await board.call('GET', 'cron/sched-stops')).enabled, false);
    await page.keyboard.press('j');
    await page.keyboard.press('p');
    await stops.getByText('active').waitFor();
    assert.equal((await board.call('GET', 'cron/sched-stops')).enabled, true);
  });

  it('makes one, tells what is wrong beside the field, changes it, and deletes it', async () => {
    const page = await board.newPage('/ui/schedules?q=sched-made');
    await page.getByRole('button', { name: 'New schedule' }).click();
    const made = page.getByRole('dialog', { name: 'New schedule' });
    await made.getByLabel('Name').fill('sched-made');
    await made.getByLabel('Expression').fill('0 25 * * *');
    await made.getByLabel('Job type').fill('wait.for.worker');
    await made.getByLabel('Queue').fill('schedules.made');
    await made.getByRole('textbox', { name: 'Arguments' }).fill('[471147]');
    await made.getByRole('button', { name: 'Create' }).click();
    await made.locator('.field.wrong', { hasText: 'Expression' }).getByRole('alert').waitFor();
    await assertAccessible(page);
    await made.getByLabel('Expression').fill('0 5 * * *');
    await made.getByText('every day at 05:00').waitFor();
    await made.getByRole('button', { name: 'Create' }).click();
    const drawer = page.getByRole('dialog', { name: 'sched-made' });
    await drawer.getByText('471147').waitFor();
    await drawer.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit sched-made' });
    await edit.getByLabel('Time zone').fill('Europe/Paris');
    await edit.getByLabel('If the previous job has not ended').selectOption('enqueue');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    await drawer.getByText('In Europe/Paris').waitFor();
    const saved = await board.call('GET', 'cron/sched-made');
    assert.equal(saved.overlap_policy, 'enqueue');
    assert.equal(saved.timezone, 'Europe/Paris');
    await drawer.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete the schedule' }).click();
    await page.getByRole('heading', { name: 'No matching schedules' }).waitFor();
    assert.doesNotMatch(page.url(), /open=/);
  });

  it('shows a viewer everything but what they may not do', async () => {
    await board.callClosed(KEYS.operator, 'POST', 'cron', {
      ...{ name: 'sched-closed', expression: '@hourly', type: 'a.b', args: [] },
    });
    const page = await board.newPage('/ui/schedules?open=sched-closed', { key: KEYS.viewer });
    const drawer = page.getByRole('dialog', { name: 'sched-closed' });
    await drawer.getByText('every hour').waitFor();
    assert.equal(await drawer.getByRole('button', { name: /Run now|Pause|Edit|Delete/ }).count(), 0);
    await page.keyboard.press('Escape');
    assert.equal(
      await page
        .getByRole('main')
        .getByRole('button', { name: /New schedule|Run|Pause/ })
        .count(),
      0,
    );
    const status = await page.evaluate(
      async () => (await fetch('../ojs/v1/crons/sched-closed/trigger', { method: 'POST' })).status,
    );
    assert.equal(status, 403);
  });

  it('is sound in both themes, wide or narrow', async () => {
    await board.call('POST', 'cron/sched-nightly/trigger');
    const page = await board.newPage('/ui/schedules?q=sched-');
    await row(page, 'sched-nightly').waitFor();
    await assertSound(page);
    await page.getByRole('link', { name: 'sched-nightly' }).click();
    await page
      .getByRole('dialog')
      .getByText(/completed/)
      .first()
      .waitFor();
    await assertSound(page);
  });
});
