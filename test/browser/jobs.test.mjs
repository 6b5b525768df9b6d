// The list of jobs: finding them, what happens to them meanwhile, acting on some or on all that match.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { assertAccessible, assertNoSideways, dashboard, KEYS } from './support/index.mjs';
import { SOON_MS } from './support/pages.mjs';
import { puller } from './support/pull.mjs';

describe('the jobs page', { timeout: 900_000 }, () => {
  const board = dashboard();
  const worker = puller((...request) => board.call(...request));
  const rows = (page) => page.locator('table[aria-label=Jobs] tbody tr');
  const rowOf = (page, id) => rows(page).filter({ has: page.locator(`a[href$="/jobs/${id}"]`) });
  const tab = (page, name) => page.getByRole('navigation', { name: 'Parts of this page' }).getByRole('link', { name });
  const live = (page) => page.getByRole('button', { name: /^Live updates: Live/ }).waitFor();
  const count = async (page, wanted) => {
    await page.waitForFunction(
      (number) => document.querySelectorAll('table[aria-label=Jobs] tbody tr').length === number,
      wanted,
    );
  };
  const states = async (queue) => {
    const { counts } = await board.call('GET', `admin/jobs?queue=${queue}&counts=true&per_page=1`);
    return Object.fromEntries(Object.entries(counts).filter(([, jobs]) => jobs > 0));
  };

  before(async () => {
    await worker.dead('jobs.found', { type: 'SmtpError', message: 'mailbox of zebra is full' }, { type: 'mail.send' });
    await worker.enqueue('jobs.found', { type: 'mail.send', args: [{ to: 'giraffe' }], tags: ['herd'] });
    await worker.enqueue('jobs.found', { type: 'report.build', args: [{ for: 'giraffe' }], delay_until: '+PT1H' });
    const jobs = Array.from({ length: 60 }, (_, index) => ({
      ...{ type: 'wait.here', args: [index] },
      options: { queue: 'jobs.many', priority: index === 0 ? 9 : 0 },
    }));
    await board.call('POST', 'jobs/batch', { jobs });
  });

  it('finds jobs by what they say, with every filter in the URL', async () => {
    const page = await board.newPage('/ui/jobs?queue=jobs.found');
    await count(page, 3);
    await page.getByRole('searchbox', { name: 'Search', exact: true }).fill('giraffe');
    await page.waitForURL('**/ui/jobs?queue=jobs.found&q=giraffe');
    await count(page, 2);
    await page.getByText('Searched 3 jobs, the newest first. No more jobs.').waitFor();
    await page.getByRole('searchbox', { name: 'Type' }).fill('mail.*');
    await count(page, 1);
    await page.getByRole('link', { name: 'Remove the filter Search giraffe' }).click();
    await count(page, 2);
    await page.getByRole('searchbox', { name: 'Words in the error' }).fill('zebra');
    await count(page, 1);
    await page.getByRole('link', { name: 'Clear all' }).click();
    await page.waitForURL('**/ui/jobs');
    await page.goBack();
    await count(page, 1);
    await page.reload();
    await count(page, 1);
    assert.equal(await page.getByRole('searchbox', { name: 'Words in the error' }).inputValue(), 'zebra');
  });

  it('names filters as people say them', async () => {
    const page = await board.newPage('/ui/jobs?queue=jobs.found');
    await count(page, 3);
    await page.getByLabel('Dead letters').selectOption('Only dead letters');
    await count(page, 1);
    await page.getByLabel('Created').selectOption('Created last hour');
    await page.locator('.chip', { hasText: 'Created last hour' }).waitFor();
    await page.getByRole('link', { name: 'Remove the filter Only dead letters' }).click();
    await page.waitForURL('**/ui/jobs?queue=jobs.found&since=1h');
    await count(page, 3);
  });

  it('shows the group and the arguments of each job in short, with the columns that this browser chose', async () => {
    const id = await worker.enqueue('jobs.columns', { args: [{ to: 'ada', text: 'x'.repeat(5_000) }], group: 'acme' });
    const page = await board.newPage('/ui/jobs?queue=jobs.columns');
    const cell = (name) => rowOf(page, id).locator(`td[data-label="${name}"]`);
    await cell('Arguments')
      .getByText(/^\{"to":"ada","text":"x+…/)
      .waitFor();
    assert.ok((await cell('Arguments').textContent()).length < 200);
    assert.equal(await cell('Id').count(), 0);
    await page.getByRole('button', { name: 'Columns' }).click();
    const dialog = page.getByRole('dialog', { name: 'Columns' });
    await dialog.getByLabel('Id').check();
    await dialog.getByLabel('Attempts').uncheck();
    await assertAccessible(page);
    await page.keyboard.press('Escape');
    await page.reload();
    await cell('Id').waitFor();
    assert.equal(await cell('Attempts').count(), 0);
    await cell('Group').getByRole('link', { name: 'acme' }).click();
    await page.waitForURL('**/ui/jobs?queue=jobs.columns&group=acme');
    await page.setViewportSize({ width: 390, height: 844 });
    await assertNoSideways(page);
  });

  it('leads nowhere from a tag that is hidden from the key', async () => {
    const shown = '[redacted:0a1b2c3d4e5f]';
    const page = await board.newPage('/ui/jobs?queue=jobs.found&type=mail.*', {
      prepare: (fresh) =>
        fresh.route(/\/admin\/jobs\?/, async (route) => {
          const answer = await (await route.fetch()).json();
          for (const job of answer.items) if (job.tags) job.tags = [shown];
          await route.fulfill({ json: answer });
        }),
    });
    await page.getByText(shown).waitFor();
    assert.equal(await page.getByRole('link', { name: shown }).count(), 0);
  });

  it('is where the search above all pages leads, which a key focuses', async () => {
    const page = await board.newPage('/ui/queues');
    await page.getByRole('heading', { level: 1, name: 'Queues' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('"mailbox of zebra"');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/ui/jobs?q=*');
    await count(page, 1);
    await page.getByText('mailbox of zebra is full').waitFor();
  });

  it('counts the states of the filter on its tabs, and shows those of one', async () => {
    const page = await board.newPage('/ui/jobs?queue=jobs.found');
    await tab(page, 'Scheduled 1').click();
    await page.waitForURL('**/ui/jobs?queue=jobs.found&state=scheduled');
    await count(page, 1);
    await tab(page, 'All 3').waitFor();
    await tab(page, 'Discarded 1').click();
    await rows(page).getByText('mailbox of zebra is full').waitFor();
    await page.goBack();
    await rows(page).getByText('report.build').waitFor();
  });

  it('shows page after page, in the order that is asked for', async () => {
    const page = await board.newPage('/ui/jobs?queue=jobs.many');
    await count(page, 50);
    await page.getByText('1–50 of 60').waitFor();
    await page.getByRole('link', { name: 'Next page' }).click();
    await count(page, 10);
    assert.match(page.url(), /page=2$/);
    // A drawer opens and closes over the page that is shown.
    await page.getByRole('link', { name: 'Enqueue' }).click();
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.waitForURL('**/ui/jobs?queue=jobs.many&page=2');
    await count(page, 10);
    await page.goto('/ui/jobs?queue=jobs.many');
    await count(page, 50);
    const priority = page.getByRole('columnheader', { name: 'Priority' }).getByRole('link');
    await priority.click();
    await page.waitForURL('**&sort=priority');
    await priority.click();
    await page.waitForURL('**&sort=priority&order=desc');
    await rows(page).first().getByText('9', { exact: true }).waitFor();
  });

  it('says when a search has not looked at everything, and looks further', async () => {
    const page = await board.newPage('/ui/jobs', {
      prepare: (fresh) =>
        // As a queue with many jobs answers.
        fresh.route(/\/admin\/jobs\?.*q=giraffe/, async (route) => {
          const isFirst = !route.request().url().includes('cursor=');
          const answer = await route.fetch({
            url: route
              .request()
              .url()
              .replace(/&?cursor=[^&]*/, ''),
          });
          const body = await answer.json();
          const part = isFirst ? body.items.slice(0, 1) : body.items.slice(1);
          const place = isFirst
            ? { searched: 20_000, more: true, cursor: 'on' }
            : { searched: 5_000, more: false, cursor: null };
          await route.fulfill({ json: { ...body, ...place, items: part } });
        }),
    });
    await page.goto('/ui/jobs?queue=jobs.found&q=giraffe');
    await page.getByText('Searched 20,000 jobs').waitFor();
    await count(page, 1);
    await page.getByRole('button', { name: 'Search further' }).click();
    await page.getByText('Searched 25,000 jobs, the newest first. No more jobs.').waitFor();
    await count(page, 2);
  });

  it('changes a row where it stands, and counts what is new, within a second', async () => {
    const id = await worker.enqueue('jobs.live');
    const page = await board.newPage('/ui/jobs?queue=jobs.live');
    await Promise.all([live(page), rowOf(page, id).getByText('available').waitFor()]);
    await worker.take('jobs.live');
    await rowOf(page, id).getByText('active').waitFor({ timeout: SOON_MS });
    await tab(page, 'Active 1').waitFor({ timeout: SOON_MS });
    const next = await worker.enqueue('jobs.live', { type: 'came.later' });
    await page.getByRole('button', { name: '1 newer' }).waitFor({ timeout: SOON_MS });
    await page.getByText('2 in all').waitFor({ timeout: SOON_MS });
    // Nothing has moved until it is asked for.
    assert.equal(await rows(page).count(), 1);
    await worker.ack(id);
    await rowOf(page, id).getByText('completed').waitFor({ timeout: SOON_MS });
    await page.getByRole('button', { name: '1 newer' }).click();
    await rowOf(page, next).waitFor();
    assert.equal(await page.getByRole('button', { name: /newer/ }).count(), 0);
  });

  it('counts as new only what the search finds', async () => {
    await worker.enqueue('jobs.newer', { args: ['needle'] });
    const page = await board.newPage('/ui/jobs?queue=jobs.newer&q=needle');
    await Promise.all([live(page), count(page, 1)]);
    await worker.enqueue('jobs.newer', { args: ['hay'] });
    await worker.enqueue('jobs.newer', { args: ['needle'] });
    await page.getByRole('button', { name: '1 newer' }).waitFor({ timeout: SOON_MS });
  });

  it('retries and cancels by key the row that is pointed at, and opens it', async () => {
    const id = await worker.dead('jobs.pointed', { message: 'no' });
    const page = await board.newPage('/ui/jobs?queue=jobs.pointed');
    await Promise.all([live(page), rowOf(page, id).getByText('discarded').waitFor()]);
    await page.keyboard.press('j');
    await page.keyboard.press('r');
    await page.getByText('wait.here runs again.').waitFor();
    await rowOf(page, id).getByText('available').waitFor();
    await page.keyboard.press('c');
    await page.getByText('wait.here is cancelled.').waitFor();
    await rowOf(page, id).getByText('cancelled').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/ui/jobs/${id}`);
    await page.getByRole('heading', { level: 1, name: 'wait.here' }).waitFor();
    await page.keyboard.press('Escape');
    await page.waitForURL('**/ui/jobs');
  });

  it('retries the selection by key, with a message that covers no button', async () => {
    const queue = 'jobs.selected';
    for (let left = 3; left > 0; left--) await worker.dead(queue, { message: 'no' });
    const untouched = await worker.dead(queue, { message: 'not this one' });
    const page = await board.newPage(`/ui/jobs?queue=${queue}`);
    await count(page, 4);
    const rows = page.getByRole('row').filter({ hasNotText: 'not this one' });
    for (const n of [1, 2]) await rows.nth(n).getByRole('checkbox').check();
    await page.keyboard.press('k');
    await page.getByRole('row').filter({ hasText: 'not this one' }).locator('td').nth(1).click();
    await page.keyboard.press('r');
    await page.getByRole('dialog').getByRole('button', { name: 'Retry 2 jobs' }).click();
    await page.getByText('2 jobs retried.').waitFor();
    assert.equal((await board.call('GET', `queues/${queue}/stats`)).stats.available, 2);
    assert.equal((await board.call('GET', `jobs/${untouched}`)).job.state, 'discarded');
    // Without a selection it is the row again.
    await page.goto(`/ui/jobs?queue=${queue}&state=discarded`);
    await count(page, 2);
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 700 });
      await page.keyboard.press('j');
      await page.keyboard.press('r');
      await page.locator('.toast').first().waitFor();
      assert.deepEqual(await page.evaluate(coveredByToasts), []);
    }
  });

  it('acts on the rows that are chosen, and tells first what it can act on', async () => {
    await worker.dead('jobs.chosen', { message: 'no' });
    for (let left = 3; left > 0; left--) await worker.enqueue('jobs.chosen');
    const page = await board.newPage('/ui/jobs?queue=jobs.chosen');
    await count(page, 4);
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    const bar = page.getByRole('region', { name: 'Selected rows' });
    await bar.getByText('2 jobs').waitFor();
    await bar.getByRole('button', { name: 'Cancel' }).click();
    const dialog = page.getByRole('dialog', { name: 'Cancel 2 jobs?' });
    await dialog.getByRole('button', { name: 'Cancel 2 jobs' }).click();
    await page.getByText('2 jobs cancelled.').waitFor();
    await bar.waitFor({ state: 'detached' });
    assert.deepEqual(await states('jobs.chosen'), { available: 1, cancelled: 2, discarded: 1 });
    await page.getByRole('checkbox', { name: 'Select all rows on this page' }).check();
    await bar.getByRole('button', { name: 'Retry' }).click();
    const retry = page.getByRole('dialog', { name: 'Retry 3 jobs?' });
    await retry.getByText('1 job will be skipped').waitFor();
    await assertAccessible(page);
    await retry.getByRole('button', { name: 'Retry 3 jobs' }).click();
    await page.getByText('3 jobs retried.').waitFor();
    assert.deepEqual(await states('jobs.chosen'), { available: 4 });
  });

  it('acts on all that match, on whatever page they are, once their number was typed', async () => {
    const jobs = Array.from({ length: 70 }, (_, index) => ({
      ...{ type: 'wait.here', args: [index] },
      options: { queue: 'jobs.all', tags: [index < 60 ? 'old' : 'new'] },
    }));
    await board.call('POST', 'jobs/batch', { jobs });
    const page = await board.newPage('/ui/jobs?queue=jobs.all&tag=old');
    await count(page, 50);
    await page.keyboard.press('A');
    const bar = page.getByRole('region', { name: 'Selected rows' });
    await bar.getByText('60 jobs (all that match)').waitFor();
    await bar.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Cancel 60 jobs' }).click();
    await page.getByText('60 jobs cancelled.').waitFor();
    assert.deepEqual(await states('jobs.all'), { available: 10, cancelled: 60 });
    await page.keyboard.press('A');
    await bar.getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete 60 jobs?' });
    const sure = dialog.getByRole('button', { name: 'Delete 60 jobs' });
    await dialog.getByRole('textbox').fill('6');
    assert.equal(await sure.isDisabled(), true);
    await dialog.getByRole('textbox').fill('60');
    await sure.click();
    await page.getByText('60 jobs deleted.').waitFor();
    await page.getByRole('heading', { name: 'No matching jobs' }).waitFor();
    assert.deepEqual(await states('jobs.all'), { available: 10 });
  });

  it('calls dead letters what they are, where only these are listed', async () => {
    await worker.dead('jobs.dead', { message: 'no' });
    await worker.enqueue('jobs.dead');
    const page = await board.newPage('/ui/jobs?queue=jobs.dead');
    await count(page, 2);
    await page.getByLabel('Dead letters').selectOption('true');
    await page.waitForURL('**&dead=true');
    await count(page, 1);
    await page.keyboard.press('A');
    const bar = page.getByRole('region', { name: 'Selected rows' });
    await bar.getByRole('button', { name: 'Discard' }).waitFor();
    await bar.getByRole('button', { name: 'Redrive' }).click();
    await page.getByRole('button', { name: 'Redrive 1 job' }).click();
    await page.getByText('1 job redriven.').waitFor();
    assert.deepEqual(await states('jobs.dead'), { available: 2 });
  });

  it('shows how far an operation has come, and stops it', async () => {
    await worker.enqueue('jobs.slow');
    const told = { operation_id: 'op', action: 'cancel', matched: 1, skipped: 0, failed: 0, errors: [] };
    let stopped = false;
    const page = await board.newPage('/ui/jobs?queue=jobs.slow', {
      prepare: async (fresh) => {
        // An operation that takes long, as the server tells of one.
        await fresh.route(/\/admin\/jobs\/bulk\/cancel/, async (route) => {
          const { dry_run: dry } = route.request().postDataJSON();
          const preview = { matched: 900, matched_is_exact: true, by_state: { available: 900 }, by_queue: { a: 900 } };
          await route.fulfill({ json: dry ? preview : { ...told, succeeded: 100, completed: false } });
        });
        await fresh.route(/\/admin\/operations\/op/, async (route) => {
          if (route.request().method() === 'POST') stopped = true;
          // The server waits a while before it answers.
          else await new Promise((resolve) => setTimeout(resolve, 100));
          await route.fulfill({
            json: { ...told, succeeded: 450, completed: stopped, ...(stopped && { aborted: true }) },
          });
        });
      },
    });
    await count(page, 1);
    await page.keyboard.press('A');
    await page.getByRole('region', { name: 'Selected rows' }).getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Cancel 900 jobs' }).click();
    await page.getByText('450 of 900').waitFor();
    assert.equal(await page.getByRole('progressbar', { name: 'Cancelling' }).getAttribute('value'), '0.5');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Stopped: 450 jobs cancelled. Completed changes stay.').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('enqueues a job, says what is wrong beside its field, and warns of a type that was probably meant', async () => {
    await board.call('POST', 'jobs', { type: 'work.do', args: [{}], options: { queue: 'jobs.made' } });
    const page = await board.newPage('/ui/jobs?queue=jobs.made');
    await page.getByRole('link', { name: 'Enqueue' }).click();
    await page.waitForURL('**/ui/jobs?queue=jobs.made&enqueue=1');
    const drawer = page.getByRole('dialog', { name: 'Enqueue a job' });
    const enqueue = drawer.getByRole('button', { name: 'Enqueue' });
    await drawer.getByLabel('Type').fill('work.od');
    await drawer.getByLabel('Arguments').fill('[1,');
    await drawer
      .locator('.field.wrong')
      .getByText(/end of JSON/)
      .waitFor();
    assert.equal(await enqueue.isDisabled(), true);
    await drawer.getByLabel('Arguments').fill('{"a": 1}');
    await enqueue.click();
    await drawer.locator('.field.wrong', { hasText: 'Arguments' }).getByRole('alert').waitFor();
    await drawer.getByLabel('Arguments').fill('[12345678901234567890]');
    await drawer.getByText('12345678901234567890 has more digits than the server can store').waitFor();
    await drawer.getByLabel('Arguments').fill('["12345678901234567890"]');
    await drawer.getByLabel('Delay').fill('2h');
    await drawer.getByLabel('Priority').fill('4');
    await drawer.getByLabel('Group').fill('acme, inc');
    await enqueue.click();
    await drawer.getByText('Did you mean "work.do"?').waitFor();
    await drawer.getByRole('link', { name: 'Open the job' }).click();
    await page.getByRole('heading', { level: 1, name: 'work.od' }).waitFor();
    await page.getByText('12345678901234567890').waitFor();
    const id = page.url().split('/').at(-1);
    const job = await board.call('GET', `admin/jobs/${id}`);
    assert.deepEqual([job.state, job.priority, job.queue, job.group], ['scheduled', 4, 'jobs.made', 'acme, inc']);
    await page.goBack();
    await drawer.waitFor();
    await page.keyboard.press('Escape');
    await page.waitForURL('**/ui/jobs?queue=jobs.made');
  });

  it('keeps a view by its name', async () => {
    const page = await board.newPage('/ui/jobs?queue=jobs.found&state=discarded');
    await count(page, 1);
    await page.getByRole('button', { name: 'Save view' }).click();
    await page.getByLabel('Name').fill('Broken mail');
    await page.keyboard.press('Enter');
    await page.goto('/ui/jobs');
    await page.getByRole('navigation', { name: 'Saved views' }).getByRole('link', { name: 'Broken mail' }).click();
    await page.waitForURL('**/ui/jobs?queue=jobs.found&state=discarded');
    await page.getByRole('button', { name: 'Delete view' }).click();
    assert.equal(await page.getByRole('navigation', { name: 'Saved views' }).count(), 0);
  });

  it('says what went wrong, and tries again', async () => {
    let isDown = true;
    const page = await board.newPage('/ui/jobs?queue=jobs.found', {
      expect: /ERR_FAILED/,
      prepare: (fresh) => fresh.route(/\/admin\/jobs\?/, (route) => (isDown ? route.abort() : route.continue())),
    });
    await page.getByText('The server cannot be reached.').waitFor();
    isDown = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await count(page, 3);
    await page.goto('/ui/jobs?fingerprint=nothing');
    await page
      .getByRole('alert')
      .getByText(/fingerprint must be/)
      .waitFor();
  });

  it('offers nothing to a key that may only read, which the server refuses as well', async () => {
    const enqueue = { type: 'wait.here', args: [], options: { queue: 'jobs.viewer' } };
    await board.callClosed(KEYS.operator, 'POST', 'jobs', enqueue);
    const page = await board.newPage('/ui/jobs?queue=jobs.viewer', { key: KEYS.viewer });
    await count(page, 1);
    assert.equal(await page.getByRole('checkbox').count(), 0);
    assert.equal(await page.getByRole('link', { name: 'Enqueue' }).count(), 0);
    await page.keyboard.press('A');
    await page.keyboard.press('j');
    await page.keyboard.press('c');
    assert.equal(await page.getByRole('region', { name: 'Selected rows' }).count(), 0);
    const filter = { filter: { queue: 'jobs.viewer' }, confirm: true };
    for (const [path, body] of [
      ['admin/jobs/bulk/cancel', filter],
      ['admin/jobs/bulk/delete', filter],
      ['jobs/bulk/retry', { job_ids: ['x'] }],
      ['jobs', enqueue],
    ]) {
      await assert.rejects(board.callClosed(KEYS.viewer, 'POST', path, body), /: 403 /);
    }
  });

  it('has nothing that axe finds wrong, in both themes, wide or narrow', async () => {
    const page = await board.newPage('/ui/jobs?queue=jobs.found', { theme: 'light' });
    await count(page, 3);
    await page.keyboard.press('A');
    await assertAccessible(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await assertAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await assertNoSideways(page);
    await page.goto('/ui/jobs?queue=jobs.found&q=nowhere&enqueue=1');
    await page.getByRole('dialog').waitFor();
    await assertAccessible(page);
  });
});

/** Buttons and links in the page that a message lies over. */
function coveredByToasts() {
  const boxes = [...document.querySelectorAll('.toast')].map((toast) => toast.getBoundingClientRect());
  const bar = document.querySelector('.top-bar').getBoundingClientRect().bottom;
  return [...document.querySelectorAll('a, button, input, select')]
    .filter((element) => !element.closest('.toast, .skip'))
    .filter((element) => {
      const { left, right, top, bottom, width } = element.getBoundingClientRect();
      const isSeen =
        width > 0 && bottom > bar && top < innerHeight && element.checkVisibility({ visibilityProperty: true });
      return (
        isSeen && boxes.some((box) => left < box.right && right > box.left && top < box.bottom && bottom > box.top)
      );
    })
    .map((element) => element.outerHTML.slice(0, 120));
}
