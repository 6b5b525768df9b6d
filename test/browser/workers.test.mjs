// Workers that pull, and handlers that jobs are pushed to.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dashboard, KEYS } from './support/index.mjs';
import { answer, assertFitForAll, live, SOON_MS } from './support/pages.mjs';

describe('the page of workers and targets', { timeout: 900_000 }, () => {
  const board = dashboard();
  const beat = (worker_id) =>
    board.call('POST', 'workers/heartbeat', {
      ...{ worker_id, active_jobs: [], queues: ['wrk.jobs'], hostname: 'box', pid: 7, concurrency: 4 },
    });
  const workers = (page) => page.getByRole('table', { name: 'Workers' });
  const row = (page, id) => workers(page).getByRole('row').filter({ hasText: id });
  const directive = async (id) => (await board.call('GET', `admin/workers/${id}`)).directive;

  it('shows a worker within a second of its first heartbeat, with the jobs that it holds', async () => {
    const page = await board.newPage('/ui/workers');
    await live(page);
    await beat('wrk-live');
    await row(page, 'wrk-live').getByText('running').waitFor({ timeout: SOON_MS });
    await board.call('POST', 'jobs', { type: 'wait.for.worker', args: [], queue: 'wrk.jobs' });
    await board.call('POST', 'workers/fetch', { queues: ['wrk.jobs'], worker_id: 'wrk-live', count: 1 });
    await row(page, 'wrk-live').getByRole('link', { name: 'wrk-live' }).click();
    await page.waitForURL('**/ui/workers?worker=wrk-live');
    const drawer = page.getByRole('dialog', { name: 'Worker wrk-live' });
    await drawer.getByText('wait.for.worker').waitFor();
    await assertFitForAll(page);
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'detached' });
    await page.goBack();
    await drawer.waitFor();
  });

  it('quiets, resumes, terminates and forgets one, and tells all', async () => {
    await beat('wrk-told');
    const page = await board.newPage('/ui/workers');
    await row(page, 'wrk-told').getByRole('button', { name: 'Quiet' }).click();
    await page.getByText('wrk-told takes no more jobs.').waitFor();
    assert.equal(await directive('wrk-told'), 'quiet');
    await row(page, 'wrk-told').getByRole('button', { name: 'Resume' }).click();
    await page.getByText('wrk-told takes jobs again.').waitFor();
    assert.equal(await directive('wrk-told'), 'running');
    await row(page, 'wrk-told').getByRole('button', { name: 'Terminate' }).click();
    await answer(page, 'Terminate');
    await page.getByText('wrk-told exits when its jobs have ended.').waitFor();
    assert.equal(await directive('wrk-told'), 'terminate');
    await page.getByRole('button', { name: 'Resume all' }).click();
    await answer(page, /^Notify/);
    await page.getByText('All workers were notified.').waitFor();
    assert.equal(await directive('wrk-told'), 'running');
  });

  it('forgets one that is silent', async () => {
    let isGone = false;
    const page = await board.newPage('/ui/workers', {
      // Nobody waits a minute for a worker to fall silent.
      prepare: async (fresh) => {
        const silent = {
          id: 'wrk-gone',
          state: 'stale',
          directive: 'running',
          active_jobs: 2,
          queues: [],
          metadata: {},
        };
        const at = { started_at: '2026-01-01T00:00:00Z', last_heartbeat_at: '2026-01-01T00:00:00Z' };
        const summary = { total: 1, running: 0, quiet: 0, terminate: 0, stale: 1 };
        const shown = { ...silent, ...at, hostname: null, pid: null, concurrency: null, version: null };
        await fresh.route(/admin\/workers\?/, (route) =>
          route.fulfill({
            json: isGone ? { items: [], summary: { ...summary, total: 0 } } : { items: [shown], summary },
          }),
        );
        await fresh.route(/admin\/workers\/wrk-gone/, (route) => {
          isGone = route.request().method() === 'DELETE';
          return route.fulfill({ status: 204 });
        });
      },
    });
    await row(page, 'wrk-gone').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('Its jobs run elsewhere at once.').waitFor();
    await answer(page, 'Remove');
    await page.getByRole('heading', { name: 'No workers yet' }).waitFor();
  });

  it('shows handlers, queue by queue, and tries one', async () => {
    await board.call('POST', 'jobs', { type: 'work.do', args: [{}], queue: 'wrk.push' });
    const page = await board.newPage('/ui/workers?target=HANDLER');
    const drawer = page.getByRole('dialog', { name: 'Handler HANDLER' });
    await drawer.getByRole('link', { name: 'wrk.push' }).waitFor();
    await assertFitForAll(page);
    await page.keyboard.press('Escape');
    await page.getByRole('table', { name: 'Push targets' }).getByRole('button', { name: 'Try' }).click();
    await page.getByText('No queue has stopped calling HANDLER.').waitFor();
  });

  it('shows a viewer no action', async () => {
    const page = await board.newPage('/ui/workers', { key: KEYS.viewer });
    await page.getByRole('table', { name: 'Push targets' }).waitFor();
    await assertFitForAll(page);
    await page.setViewportSize({ width: 1280, height: 800 });
    await board.callClosed(KEYS.operator, 'POST', 'workers/heartbeat', { worker_id: 'wrk-role', active_jobs: [] });
    await page.getByRole('button', { name: 'Reload' }).click();
    await row(page, 'wrk-role').waitFor();
    assert.equal(await page.getByRole('button', { name: /Quiet|Terminate|Remove|Try|Resume/ }).count(), 0);
    await assert.rejects(board.callClosed(KEYS.viewer, 'POST', 'admin/workers/wrk-role/quiet'), /403/);
  });
});
