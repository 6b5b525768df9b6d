// The list of queues: filters, order, actions, and numbers that follow what happens.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { dashboard, KEYS } from './support/index.mjs';
import { answer, assertFitForAll, live, SOON_MS } from './support/pages.mjs';

describe('the list of queues', { timeout: 900_000 }, () => {
  const board = dashboard();
  const enqueue = (queue) => board.call('POST', 'jobs', { type: 'wait.for.worker', args: [], queue });
  const row = (page, name) => page.getByRole('row').filter({ hasText: name });
  const status = async (name) => (await board.call('GET', `admin/queues/${name}`)).status;

  it('finds queues beyond the first page by their name', async () => {
    await enqueue('many.real');
    const page = await board.newPage('/ui/queues?name=many.', {
      // So many queues would take a minute; their search and pages are tested with the server.
      prepare: (fresh) =>
        fresh.route(/admin\/queues\?/, async (route) => {
          const query = new URL(route.request().url()).searchParams;
          const [real] = (await board.call('GET', 'admin/queues?name=many.real&include=recent')).items;
          const names = Array.from({ length: 103 }, (_, n) => `many.${String(n).padStart(3, '0')}`);
          const found = names.filter((name) => name.includes(query.get('name') ?? ''));
          const from = (Number(query.get('page')) - 1) * 100;
          const items = found.slice(from, from + 100).map((name) => ({ ...real, name }));
          await route.fulfill({ json: { items, total: found.length } });
        }),
    });
    await row(page, 'many.000').waitFor();
    await page.getByText('103 in all').waitFor();
    await page.getByRole('link', { name: 'Next page' }).click();
    await row(page, 'many.102').waitFor();
    assert.match(page.url(), /page=2/);
    await page.goBack();
    await row(page, 'many.000').waitFor();
    await page.getByRole('searchbox', { name: 'Filter by name' }).fill('many.102');
    await page.waitForURL('**/ui/queues?name=many.102');
    await row(page, 'many.102').waitFor();
    assert.equal(await page.getByRole('row').count(), 2);
  });

  it('pauses, resumes and drains, by buttons and by keys', async () => {
    await enqueue('acts.a');
    const page = await board.newPage('/ui/queues?name=acts.');
    await row(page, 'acts.a').getByRole('button', { name: 'Pause' }).click();
    // The list is loaded anew after each change; a key acts on what is shown.
    const loaded = () => page.waitForResponse(/admin\/queues\?/);
    let listed = loaded();
    await answer(page, 'Pause');
    await listed;
    await row(page, 'acts.a').getByText('paused').waitFor();
    assert.equal(await status('acts.a'), 'paused');
    await page.keyboard.press('j');
    listed = loaded();
    await page.keyboard.press('p');
    await listed;
    // Its job is for a worker, and there is none.
    await row(page, 'acts.a').getByText('no handler').waitFor();
    assert.equal(await status('acts.a'), 'active');
    await page.keyboard.press('d');
    await answer(page, 'Drain');
    await row(page, 'acts.a').getByText('draining').waitFor();
    assert.equal(await status('acts.a'), 'draining');
    await page.getByRole('combobox', { name: 'Mode' }).selectOption('draining');
    await page.waitForURL(/mode=draining/);
    await row(page, 'acts.a').getByRole('button', { name: 'Resume' }).click();
    await page.getByRole('heading', { name: 'No matching queues' }).waitFor();
  });

  it('moves counts and sparklines as things happen, and shows new queues', async () => {
    await enqueue('moves.a');
    const page = await board.newPage('/ui/queues?name=moves.');
    await live(page);
    const line = row(page, 'moves.a').getByRole('img');
    await line.waitFor();
    await board.call('POST', 'jobs', { type: 'work.do', args: [{}], queue: 'moves.a' });
    await line
      .and(page.getByTitle(/processed per minute: now 1/))
      .or(line.filter({ hasText: 'now 1' }))
      .waitFor();
    await enqueue('moves.b');
    await row(page, 'moves.b').waitFor({ timeout: SOON_MS });
    await assertFitForAll(page);
  });

  it('leaves changes to those who may make them', async () => {
    await board.callClosed(KEYS.operator, 'POST', 'jobs', { type: 'wait.for.worker', args: [], queue: 'roles' });
    const page = await board.newPage('/ui/queues', { key: KEYS.viewer });
    await row(page, 'roles').waitFor();
    for (const name of ['Pause', 'Drain', 'Resume']) {
      assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0);
    }
    await assert.rejects(board.callClosed(KEYS.viewer, 'POST', 'admin/queues/roles/pause'), /403/);
  });
});
