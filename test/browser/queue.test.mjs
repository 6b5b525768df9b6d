// The page of one queue, tab by tab.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dashboard, KEYS } from './support/index.mjs';
import { answer, assertFitForAll, live, SOON_MS } from './support/pages.mjs';

describe('the page of a queue', { timeout: 900_000 }, () => {
  const board = dashboard();
  const enqueue = (queue, more = {}) =>
    board.call('POST', 'jobs', { type: 'wait.for.worker', args: [], queue, ...more });
  const stat = (page, label) => page.getByTestId('states').locator('.stat').filter({ hasText: label });
  const config = async (queue) => (await board.call('GET', `queues/${queue}/config`)).config;
  const why = (page) => page.locator('.why');

  it('shows its counts, which lead to its jobs, and follows what happens within a second', async () => {
    await enqueue('one.live');
    const page = await board.newPage('/ui/queues/one.live');
    await live(page);
    await stat(page, 'Available').getByText('1', { exact: true }).waitFor();
    await enqueue('one.live');
    await stat(page, 'Available').getByText('2', { exact: true }).waitFor({ timeout: SOON_MS });
    assert.equal(await page.title(), 'one.live · Tocsin');
    await stat(page, 'Available').click();
    await page.waitForURL('**/ui/jobs?queue=one.live&state=available');
    await page.goBack();
    await stat(page, 'Available').waitFor();
    await page.getByText('Waiting for a turn').waitFor();
    await assertFitForAll(page);
  });

  it('says why nothing runs, and ends it where it can', async () => {
    await enqueue('one.why');
    const page = await board.newPage('/ui/queues/one.why');
    await page.getByRole('heading', { name: 'Why nothing runs' }).waitFor();
    await why(page)
      .getByText(/no worker has fetched it|nobody|No handler/i)
      .waitFor();
    await page.keyboard.press('p');
    await answer(page, 'Pause');
    await why(page).getByText('The queue is paused').waitFor();
    const heading = page.getByRole('heading', { name: 'one.why', exact: true, level: 1 });
    assert.equal(await heading.locator('..').locator('.badge').textContent(), 'paused');
    await why(page).getByRole('button', { name: 'Resume' }).click();
    await why(page).getByText('The queue is paused').waitFor({ state: 'detached' });
    assert.equal((await board.call('GET', 'admin/queues/one.why')).status, 'active');
  });

  it('names the keys that jobs wait for, and what comes when nothing waits', async () => {
    const options = { queue: 'one.keys', rate_limit: { key: 'one.key', concurrency: 1 } };
    for (let n = 0; n < 2; n++) await board.call('POST', 'jobs', { type: 'wait.for.worker', args: [], options });
    await board.call('POST', 'workers/fetch', { queues: ['one.keys'], worker_id: 'one', count: 1 });
    const page = await board.newPage('/ui/queues/one.keys');
    await why(page).getByText('1 job waits for the key one.key, with 1 of 1 running.').waitFor();
    await enqueue('one.later', { delay_until: '+PT1H' });
    await page.goto('/ui/queues/one.later');
    await why(page).getByRole('link', { name: '1 job' }).waitFor();
    await page.getByRole('heading', { name: 'Why nothing runs' }).waitFor();
    // What limits it has a tab of its own.
    await page.goto('/ui/queues/one.keys?tab=limits');
    await page.getByRole('table', { name: 'Limit keys' }).getByText('one.key', { exact: true }).waitFor();
  });

  it('counts jobs by type with their times, and by priority, and what they cost', async () => {
    await board.call('POST', 'jobs', { type: 'work.do', args: [{}], queue: 'one.types' });
    await enqueue('one.types', { options: { priority: 7 } });
    const page = await board.newPage('/ui/queues/one.types?tab=types');
    const types = page.getByRole('table', { name: 'Jobs by type' });
    await types.getByRole('row').filter({ hasText: 'work.do' }).getByText(/ms$/).first().waitFor();
    await types.getByRole('link', { name: 'Enqueued' }).click();
    await page.waitForURL(/sort=enqueued/);
    await assertFitForAll(page);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole('link', { name: 'Priorities' }).click();
    await page
      .getByRole('list', { name: /by priority/ })
      .getByText('at 7')
      .waitFor();
    await page.getByRole('link', { name: 'Cost', exact: true }).click();
    await page.getByRole('table', { name: 'Cost by job type' }).getByText('work.do').waitFor();
    await assertFitForAll(page);
    await page.goBack();
    await page.getByRole('list', { name: /by priority/ }).waitFor();
  });

  it('lists its groups, noisy ones first, and cancels the jobs of one', async () => {
    await board.call('PUT', 'queues/one.groups/config', { groups: { weights: { 'vip-*': 5 } } });
    const jobs = ['vip-1', ...Array(31).fill('acme, inc')].map((group) => ({
      ...{ type: 'wait.for.worker', args: [] },
      options: { queue: 'one.groups', group },
    }));
    await board.call('POST', 'jobs/batch', { jobs });
    const page = await board.newPage('/ui/queues/one.groups?tab=groups');
    const row = (text) => page.getByRole('table', { name: 'Groups' }).getByRole('row').filter({ hasText: text });
    await row('acme, inc').getByText('noisy').waitFor();
    await row('acme, inc').getByText('31', { exact: true }).waitFor();
    await row('vip-1').getByText('5', { exact: true }).waitFor();
    assert.match(await page.getByRole('row').nth(1).innerText(), /acme, inc/);
    await assertFitForAll(page);
    await row('acme, inc').getByRole('button', { name: 'Pause' }).click();
    await row('acme, inc').locator('[data-label="Why it waits"]').getByText('paused', { exact: true }).waitFor();
    await row('acme, inc').getByRole('button', { name: 'Resume' }).click();
    await row('acme, inc').getByRole('button', { name: 'Pause' }).waitFor();
    await row('acme, inc').getByRole('button', { name: 'Limit' }).click();
    await page.getByRole('dialog').getByLabel('Running at once').fill('7');
    await page.getByRole('dialog').getByLabel('Weight').fill('200');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page
      .getByRole('dialog')
      .getByText(/from 1 to 100/)
      .first()
      .waitFor();
    await page.getByRole('dialog').getByLabel('Weight').fill('9');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await row('acme, inc').getByText('9', { exact: true }).waitFor({ state: 'attached' });
    const { limits } = await board.call('GET', `queues/one.groups/groups/${encodeURIComponent('acme, inc')}`);
    assert.deepEqual(limits, { concurrency: 7 });
    await row('vip-1').getByRole('button', { name: 'Cancel' }).click();
    await answer(page, 'Cancel 1 job');
    await row('vip-1').waitFor({ state: 'detached' });
    assert.equal((await board.call('GET', 'queues/one.groups/stats')).stats.cancelled, 1);
    await row('acme, inc').getByRole('link').click();
    await page.waitForURL(/group=acme/);
    await page.getByText('wait.for.worker').first().waitFor();
    // Another reason: the order, with the job that must end first.
    await board.call('PUT', 'queues/one.strict/config', { groups: { order: 'strict' } });
    const strict = { type: 'work.do', args: [{ ms: 600_000 }], options: { queue: 'one.strict', group: 'acme' } };
    await board.call('POST', 'jobs/batch', { jobs: [strict, strict] });
    await page.goto('/ui/queues/one.strict?tab=groups');
    await row('acme').getByText('held by job').waitFor();
    // What a queue does not say of groups needs no tab.
    await enqueue('one.single');
    await page.goto('/ui/queues/one.single?tab=groups');
    await page.getByRole('heading', { name: 'Why nothing runs' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'Groups', exact: true }).count(), 0);
  });

  it('changes settings, tells what is wrong at the field, and takes them back', async () => {
    await enqueue('one.set');
    await board.call('PUT', 'queues/one.set/config', { retention: { completed: '2d', cancelled: '9d' } });
    const page = await board.newPage('/ui/queues/one.set?tab=settings');
    const field = (label) =>
      page
        .locator('label.field')
        .filter({ has: page.getByText(label, { exact: true }) })
        .locator('input, select, textarea');
    const save = () => page.getByRole('button', { name: 'Save' }).click();
    await field('Completed jobs').waitFor();
    assert.equal(await field('Completed jobs').inputValue(), 'P2D');
    assert.equal(await field('Pushed jobs at once').getAttribute('placeholder'), '10');
    await field('Pushed jobs at once').fill('many');
    await save();
    await page.locator('.field.wrong').filter({ hasText: 'Pushed jobs at once' }).locator('.error').waitFor();
    assert.equal((await config('one.set')).concurrency, undefined);
    await field('Pushed jobs at once').fill('3');
    await field('Completed jobs').fill('');
    await field('Starts').fill('100');
    await field('Period').fill('minute');
    await field('Jobs that have not ended').fill('5000');
    await field('When it is full').selectOption('drop_oldest');
    await field('Warn producers from').fill('0.5');
    await field('Accepted types').fill('wait.*, work.*');
    await field('Order of groups').selectOption('strict');
    await field('Weights').fill('{"vip-*": 5}');
    await field('Retry policy').fill('{"max_attempts": 4}');
    await save();
    await page.getByText('Settings saved.').waitFor();
    const saved = await config('one.set');
    assert.deepEqual(
      {
        ...{ concurrency: saved.concurrency, retention: saved.retention, max_size: saved.max_size },
        ...{
          types: saved.allowed_job_types,
          attempts: saved.default_retry.max_attempts,
          limit: saved.rate_limit.limit,
        },
        ...{ policy: saved.overflow_policy, warn: saved.backpressure.warning_threshold },
        groups: saved.groups,
      },
      {
        ...{ concurrency: 3, retention: { cancelled: 'P9D' }, max_size: 5000 },
        ...{ types: ['wait.*', 'work.*'], attempts: 4, limit: 100, policy: 'drop_oldest', warn: 0.5 },
        groups: { order: 'strict', weights: { 'vip-*': 5 } },
      },
    );
    await page.locator('.field').filter({ hasText: 'Pushed jobs at once' }).getByText('own').waitFor();
    await field('Starts').fill('');
    await field('Period').fill('');
    await save();
    await page.waitForFunction(() => document.querySelector('[name="rate_limit.limit"]')?.placeholder === 'not set');
    assert.equal((await config('one.set')).rate_limit, undefined);
    await assertFitForAll(page);
  });

  it('purges what was counted before, once its name is typed', async () => {
    for (let n = 0; n < 3; n++) await enqueue('one.purge');
    const page = await board.newPage('/ui/queues/one.purge?tab=danger');
    await page.getByRole('button', { name: 'Count and purge' }).click();
    await page.getByText('No matching jobs').waitFor();
    await page.getByLabel('completed').uncheck();
    await page.getByRole('button', { name: 'Count and purge' }).click();
    await page.locator('.failure').waitFor();
    await page.getByLabel('available').check();
    await page.getByRole('button', { name: 'Count and purge' }).click();
    const dialog = page.getByRole('dialog', { name: 'Purge 3 jobs?' });
    await dialog.getByText('3 available').waitFor();
    await assertFitForAll(page);
    assert.equal(await dialog.getByRole('button', { name: 'Purge 3 jobs' }).isDisabled(), true);
    await answer(page, 'Purge 3 jobs', 'one.purge');
    await page.getByText('3 jobs were deleted.').waitFor();
    assert.equal((await board.call('GET', 'admin/queues/one.purge')).counts.available, 0);
  });

  it('is deleted, with its jobs where that is wanted', async () => {
    await enqueue('one.gone');
    const page = await board.newPage('/ui/queues/one.gone?tab=danger');
    const remove = () => page.getByRole('button', { name: 'Delete the queue' }).click();
    await remove();
    await answer(page, 'Delete the queue', 'one.gone');
    await page.locator('.failure').waitFor();
    await page.getByLabel('Jobs that have not ended').selectOption('move');
    await page.getByLabel('To the queue').fill('one.heir');
    await remove();
    await answer(page, 'Delete the queue', 'one.gone');
    await page.waitForURL('**/ui/queues');
    assert.equal((await board.call('GET', 'admin/queues/one.heir')).counts.available, 1);
    await page.goto('/ui/queues/one.gone');
    await page.getByRole('alert').filter({ hasText: 'not found' }).waitFor();
  });

  it('shows a viewer neither actions nor the danger zone', async () => {
    await board.callClosed(KEYS.operator, 'POST', 'jobs', { type: 'wait.for.worker', args: [], queue: 'roles' });
    const page = await board.newPage('/ui/queues/roles?tab=danger', { key: KEYS.viewer });
    await stat(page, 'Available').waitFor();
    assert.equal(await page.getByRole('link', { name: 'Danger zone' }).count(), 0);
    assert.equal(await page.getByRole('button', { name: /^(Pause|Drain|Resume)$/ }).count(), 0);
    await page.getByRole('link', { name: 'Settings' }).last().click();
    await page.getByLabel('Completed jobs').waitFor();
    assert.equal(await page.getByLabel('Completed jobs').isDisabled(), true);
    assert.equal(await page.getByRole('button', { name: 'Save' }).count(), 0);
    for (const [method, path, body] of [
      ['PUT', 'admin/queues/roles/config', { concurrency: 1 }],
      ['DELETE', 'admin/queues/roles/jobs', { states: ['available'], confirm: true }],
      ['DELETE', 'queues/roles', {}],
    ]) {
      await assert.rejects(board.callClosed(KEYS.viewer, method, path, body), /403/);
    }
  });
});
