// The overview: what happens, what is wrong, what it costs.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dashboard, KEYS } from './support/index.mjs';
import { answer, assertFitForAll, live, SOON_MS } from './support/pages.mjs';

describe('the overview', { timeout: 900_000 }, () => {
  const board = dashboard();
  const enqueue = (queue, args = {}, type = 'wait.for.worker') =>
    board.call('POST', 'jobs', { type, args: [args], queue });
  const stat = (page, label) => page.getByTestId('states').locator('.stat').filter({ hasText: label });
  const sectionOf = (page, name) => page.locator('section', { has: page.getByRole('heading', { name }) });
  const valueIn = async (page, label) => Number(await stat(page, label).locator('.num').textContent());

  it('counts jobs of all queues by state, and counts on within a second of an event', async () => {
    await enqueue('over.live');
    const page = await board.newPage('/ui');
    await live(page);
    await stat(page, 'Available').waitFor();
    const before = await valueIn(page, 'Available');
    await enqueue('over.live');
    await stat(page, 'Available')
      .getByText(String(before + 1), { exact: true })
      .waitFor({ timeout: SOON_MS });
    assert.equal(await stat(page, 'Available').getAttribute('href'), '/ui/jobs?state=available');
    await sectionOf(page, 'Busiest queues').getByRole('link', { name: 'All queues' }).click();
    await page.waitForURL('**/ui/queues');
    await page.goBack();
    await stat(page, 'Available').waitFor();
  });

  it('shows what happened over a time that stands in the URL, and adds what happens', async () => {
    await enqueue('over.time');
    const page = await board.newPage('/ui');
    await live(page);
    await page.getByRole('button', { name: 'As a table' }).click();
    const table = page.getByRole('table', { name: 'Jobs per minute' });
    const enqueued = async () => {
      const cells = await table.locator('td[data-label=Enqueued]').allTextContents();
      return cells.reduce((sum, text) => sum + Number(text), 0);
    };
    await table.waitFor();
    assert.equal(await table.getByRole('row').count(), 61);
    const before = await enqueued();
    await enqueue('over.time');
    const deadline = Date.now() + SOON_MS;
    while ((await enqueued()) !== before + 1) assert.ok(Date.now() < deadline, 'the chart does not move');
    await page.getByRole('link', { name: 'Month', exact: true }).click();
    await page.waitForURL('**/ui?range=month');
    await page.getByRole('table', { name: 'Jobs per hour' }).waitFor();
    await page.goBack();
    await table.waitFor();
  });

  it('draws its chart where the system names no language', async () => {
    const prepare = (page) =>
      page.addInitScript(() => {
        Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix', configurable: true });
      });
    const page = await board.newPage('/ui', { prepare });
    await page.locator('.plot canvas').waitFor();
  });

  it('reads the values of a moment from its chart, looks closer at a stretch of time, and hides a line', async () => {
    await enqueue('over.chart');
    const page = await board.newPage('/ui');
    await live(page);
    const chart = page.locator('.plot');
    await chart.locator('canvas').waitFor();
    const entry = (name) => chart.locator('.u-series').filter({ hasText: name });
    const time = () => entry('Time').locator('.u-value').textContent();
    await entry('Enqueued').waitFor();
    assert.equal(await chart.locator('.u-legend').innerText(), 'EnqueuedProcessedFailed');
    const after = (cell) => getComputedStyle(cell, '::after').content;
    assert.equal(await entry('Enqueued').locator('th').evaluate(after), 'none', 'no colon without a value');
    const { x, y, width } = await chart.locator('.u-over').boundingBox();
    const timeAt = async (place) => {
      await page.mouse.move(x + place, y + 40);
      // The legend follows the pointer with the next frame.
      await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
      await entry('Time')
        .getByText(/^\d+ \w+,? \d\d:\d\d$/)
        .waitFor();
      return await time();
    };
    const [first, last] = [await timeAt(1), await timeAt(width - 1)];
    assert.notEqual(first, last);
    assert.match(await entry('Enqueued').locator('.u-value').textContent(), /^\d+$/);
    await timeAt(width - 20);
    await page.mouse.down();
    await page.mouse.move(x + width - 120, y + 60);
    await page.mouse.up();
    assert.notEqual(await timeAt(1), first);
    await page.mouse.dblclick(x + width - 60, y + 40);
    assert.equal(await timeAt(1), first);
    const picture = () => chart.locator('canvas').evaluate((canvas) => canvas.toDataURL());
    const whole = await picture();
    await entry('Enqueued').locator('th').click();
    await chart.locator('.u-series.u-off').waitFor();
    await page.waitForFunction((before) => document.querySelector('.plot canvas').toDataURL() !== before, whole);
    await entry('Enqueued').locator('th').click();
    await chart.locator('.u-series.u-off').waitFor({ state: 'detached' });
  });

  it('draws its chart in the colours of the theme, also when that changes', async () => {
    const page = await board.newPage('/ui', { theme: 'light' });
    await page.locator('.plot canvas').waitFor();
    await page.emulateMedia({ colorScheme: 'light' });
    const before = await page.locator('.plot canvas').evaluate((canvas) => canvas.toDataURL());
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.waitForFunction((light) => document.querySelector('.plot canvas').toDataURL() !== light, before);
  });

  it('begins and ends maintenance', async () => {
    const page = await board.newPage('/ui/settings?tab=deployment&do=maintenance');
    try {
      const dialog = page.getByRole('dialog', { name: 'Start maintenance' });
      await dialog.getByLabel('For').fill('an age');
      await dialog.getByRole('button', { name: 'Start maintenance' }).click();
      await dialog.locator('.field .error').waitFor();
      await dialog.getByLabel('For').fill('1h');
      await dialog.getByLabel('Reason').fill('moving <b>the database</b>');
      await dialog.getByRole('button', { name: 'Start maintenance' }).click();
      await page.getByRole('button', { name: 'End maintenance' }).waitFor();
      assert.match(page.url(), /\/ui\/settings\?tab=deployment$/);
      await page.goto('/ui');
      const banner = page.getByRole('status').filter({ hasText: 'Maintenance' });
      await banner.getByText('moving <b>the database</b>').waitFor();
      assert.equal((await board.call('GET', 'admin/maintenance')).reason, 'moving <b>the database</b>');
      await assertFitForAll(page);
      await banner.getByRole('button', { name: 'End maintenance' }).click();
      await answer(page, 'End maintenance');
      await banner.waitFor({ state: 'detached' });
      await page.goto('/ui/settings?tab=deployment');
      await page.getByRole('button', { name: 'Start maintenance' }).waitFor();
      assert.equal((await board.call('GET', 'admin/maintenance')).enabled, false);
    } finally {
      await board.call('POST', 'admin/maintenance', { enabled: false });
    }
  });

  it('tells of failures as they come, without moving those that are read', async () => {
    await enqueue('over.fails', { fail: 'first of the overview', final: true }, 'work.do');
    const page = await board.newPage('/ui');
    await live(page);
    await page.locator('.failure-list').getByText('first of the overview').waitFor();
    await enqueue('over.fails', { fail: 'second, of another kind', final: true }, 'work.do');
    await page.getByRole('button', { name: /^\d+ newer$/ }).click({ timeout: SOON_MS });
    await page.locator('.failure-list').getByText('second, of another kind').waitFor();
    await sectionOf(page, 'Newest failures').getByRole('link', { name: 'All failures' }).waitFor();
  });

  it('shows alerts that fire and handlers that do not take calls', async () => {
    const queue = 'over.alerts';
    const { id } = await board.call('POST', 'admin/alerts', { name: 'too deep', queue, metric: 'depth', above: 0 });
    try {
      await enqueue(queue);
      const page = await board.newPage('/ui', {
        prepare: (fresh) =>
          fresh.route(/admin\/queues\?/, async (route) => {
            const response = await route.fetch();
            const list = await response.json();
            for (const item of list.items) if (item.name === queue) item.suspended_targets = ['MAILER'];
            await route.fulfill({ response, json: list });
          }),
      });
      await page.getByRole('status').filter({ hasText: 'The handler MAILER does not accept calls' }).waitFor();
      const firing = page.getByRole('alert').filter({ hasText: 'too deep: Jobs that have not ended' });
      await firing.filter({ hasText: 'Jobs that have not ended 1 in over.alerts' }).waitFor();
      await live(page);
      await enqueue(queue);
      await firing.filter({ hasText: 'Jobs that have not ended 2 in over.alerts' }).waitFor({ timeout: SOON_MS });
    } finally {
      await board.call('DELETE', `admin/alerts/${id}`);
    }
  });

  it('lists what needs attention at the top: unhandled jobs, full queues, new failures, dead letters', async () => {
    const { job } = await board.call('POST', 'jobs', {
      ...{ type: 'work.do', args: [{ fail: 'nobody expected this one', final: true }], queue: 'over.dies' },
      options: { queue: 'over.dies', retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } },
    });
    await board.call('PUT', 'queues/over.full/config', { backpressure: { max_depth: 2 } });
    for (let n = 0; n < 2; n++) await enqueue('over.full');
    await board.call('GET', `jobs/${job.id}?wait=20`);
    const page = await board.newPage('/ui', {
      // Of the queues of other tests, only the first ones would be shown.
      prepare: (fresh) =>
        fresh.route(/admin\/queues\?/, async (route) => {
          const response = await route.fetch();
          const list = await response.json();
          const items = list.items.filter(({ name }) => ['over.full', 'over.dies'].includes(name));
          await route.fulfill({ response, json: { ...list, items } });
        }),
    });
    const line = (text) => sectionOf(page, 'Needs attention').locator('.attention-line').filter({ hasText: text });
    await line('No handler takes the jobs of over.full: 2 jobs wait, the oldest for ').waitFor();
    await line('over.full is 100 % full: 2 of 2').waitFor();
    await line('nobody expected this one').waitFor();
    const dead = line(/\d+ dead letters? since yesterday/);
    assert.match(await dead.getByRole('link').getAttribute('href'), /failures\?state=dead&since=24h$/);
    const above = (name) => page.getByText(name).first().boundingBox();
    assert.ok((await above('Needs attention')).y < (await stat(page, 'Available').boundingBox()).y);
    await assertFitForAll(page);
    await page.goto('/ui/queues?name=over.full');
    await page.getByRole('row').filter({ hasText: 'over.full' }).getByText('no handler', { exact: true }).waitFor();
  });

  it('shows that all is well, with the time of the check', async () => {
    const queue = (found) => ({ ...found, waiting_for: undefined, pressure: undefined, suspended_targets: [] });
    const emptied = (change) => async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: change(await response.json()) });
    };
    const page = await board.newPage('/ui', {
      prepare: async (fresh) => {
        await fresh.route(
          /admin\/queues\?/,
          emptied((list) => ({ ...list, items: list.items.map(queue) })),
        );
        await fresh.route(
          /admin\/failures\?/,
          emptied((list) => ({ ...list, items: [], total: 0, more: false })),
        );
        await fresh.route(
          /admin\/alerts\?|\/crons\?/,
          emptied((list) => ({ ...list, items: [] })),
        );
      },
    });
    await page
      .getByRole('status')
      .filter({ hasText: /All is well\s*checked (now|\d+ s ago)/ })
      .waitFor();
    assert.equal(await page.getByRole('heading', { name: 'Needs attention' }).count(), 0);
  });

  it('says how to enqueue the first job, and what went wrong when nothing can be loaded', async () => {
    const prepare = (fresh) =>
      fresh.route(/admin\/queues\?/, (route) => route.fulfill({ json: { items: [], total: 0 } }));
    const empty = await board.newPage('/ui', { prepare });
    await empty.getByRole('heading', { name: 'No job yet' }).waitFor();
    await empty.getByRole('button', { name: 'Copy the command' }).click();
    const copied = await empty.evaluate(() => navigator.clipboard.readText());
    assert.match(copied, /^curl http:\/\/127\.0\.0\.1:\d+\/ojs\/v1\/jobs \\\n/);
    await assertFitForAll(empty);
    const closed = await board.newPage('/ui', { key: KEYS.viewer, prepare });
    await closed.getByText('-H "Authorization: Bearer $TOCSIN_KEY"').waitFor();
    let isDown = true;
    const broken = await board.newPage('/ui', {
      prepare: (fresh) =>
        fresh.route(/admin\/queues\?/, (route) =>
          isDown ? route.fulfill({ status: 503, json: { error: { message: 'Not now.' } } }) : route.continue(),
        ),
    });
    await broken.getByRole('alert').filter({ hasText: 'Not now.' }).waitFor();
    isDown = false;
    await broken.getByRole('button', { name: 'Try again' }).click();
    await stat(broken, 'Available').waitFor();
  });

  it('shows what rows cost, and no action to a viewer', async () => {
    await board.callClosed(KEYS.operator, 'POST', 'jobs', { type: 'wait.for.worker', args: [], queue: 'roles' });
    const page = await board.newPage('/ui', { key: KEYS.viewer });
    await page.getByRole('table', { name: 'Cost by job type' }).getByText('wait.for.worker').first().waitFor();
    assert.equal(await page.getByRole('button', { name: 'Start maintenance' }).count(), 0);
    await assert.rejects(board.callClosed(KEYS.viewer, 'POST', 'admin/maintenance', { enabled: true }), /403/);
  });
});
