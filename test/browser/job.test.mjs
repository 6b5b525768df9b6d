// One job: its story as it goes on, why it waits, what it carries, and what can be done with it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { assertAccessible, assertNoSideways, dashboard, KEYS } from './support/index.mjs';
import { assertFitForAll, SOON_MS } from './support/pages.mjs';
import { puller } from './support/pull.mjs';

describe('the page of a job', { timeout: 900_000 }, () => {
  const board = dashboard();
  const worker = puller((...request) => board.call(...request));
  const { worker_id } = worker;
  const live = (page) => page.getByRole('button', { name: /^Live updates: Live/ }).waitFor();
  const section = (page, name) =>
    page.locator('.section').filter({ has: page.getByRole('heading', { level: 2, name, exact: true }) });
  const state = (page, word) => page.locator('.identity .badge').getByText(word, { exact: true });
  const button = (page, name) => page.locator('.page-head').getByRole('button', { name, exact: true });
  const open = async (id, options) => {
    const page = await board.newPage(`/ui/jobs/${id}`, options);
    await page.locator('.identity').waitFor();
    return page;
  };
  const job = (id) => board.call('GET', `admin/jobs/${id}`);

  /** A job that has failed twice, with all that a handler can leave. */
  async function eventful(queue) {
    const parent = await worker.enqueue(queue, { type: 'parent.job', delay_until: '+PT1H' });
    const retry = { max_attempts: 5, initial_interval: 'PT0.001S', max_interval: 'PT0.001S', jitter: false };
    const meta = { parent_id: parent, cron_name: 'nightly', tenant: 'acme' };
    const id = await worker.enqueue(queue, {
      type: 'invoice.send',
      args: [{ invoice: 4711 }],
      meta,
      retry,
      tags: ['eu'],
    });
    const child = await worker.enqueue(queue, { type: 'child.job', meta: { parent_id: id }, delay_until: '+PT1H' });
    for (const attempt of [1, 2]) {
      while (!(await worker.take(queue)));
      await board.call('POST', `jobs/${id}/log`, { worker_id, lines: [{ message: `begins ${attempt}` }] });
      const message = `connect ETIMEDOUT ${attempt}`;
      await worker.nack(id, {
        type: 'SmtpError',
        code: 'smtp_timeout',
        message,
        stack: `SmtpError: ${message}\n    at send`,
      });
    }
    while (!(await worker.take(queue)));
    const line = { level: 'warn', message: 'slow', fields: { rows: 7 } };
    await board.call('POST', `jobs/${id}/log`, { worker_id, lines: [line] });
    await board.call('POST', `jobs/${id}/progress`, { worker_id, progress: 0.4, message: 'page 4 of 10' });
    await board.call('PUT', `jobs/${id}/checkpoint`, { worker_id, state: { page: 4 } });
    await board.call('PUT', `jobs/${id}/steps/charge`, { worker_id, result: { charged: 12 } });
    return { id, parent, child };
  }

  it('shows what the job writes, as it is written, and starts again with its writer', async () => {
    const id = await worker.enqueue('output', { type: 'chat.answer' });
    while (!(await worker.take('output')));
    const write = (first, chunks, rest = {}) =>
      board.call('POST', `jobs/${id}/streams/tokens`, { worker_id, first, chunks, flush: true, ...rest });
    await write(0, ['The ', 'answer ']);
    const page = await open(id);
    const output = section(page, 'Output');
    await output.getByText('The answer').waitFor();
    await write(2, ['is <b>42</b>.', { tokens: 4 }]);
    await output.getByText('The answer is <b>42</b>.{"tokens":4}').waitFor();
    await assertAccessible(page);
    await write(0, ['Once ', 'more.'], { execution: 1 });
    await output.getByText('Once more.', { exact: true }).waitFor();
    await board.call('POST', `jobs/${id}/streams/log`, { worker_id, first: 0, chunks: ['beside'], flush: true });
    await output.getByRole('combobox', { name: 'Stream' }).selectOption('tokens');
    await worker.ack(id);
    await state(page, 'completed').waitFor();
    await output.getByText('Once more.', { exact: true }).waitFor();
    const later = await open(id, { width: 360, theme: 'dark' });
    await section(later, 'Output').getByText('beside').waitFor();
    await assertNoSideways(later);
  });

  it('shows every option that the job was given, also those that have no look of their own', async () => {
    const options = {
      ...{ timeout_ms: 90_000, visibility_timeout_ms: 300_000, tags: ['eu'], retention: { completed: '2d' } },
      ...{ unique: { keys: ['type', 'args'], period: 'PT1H' }, rate_limit: { concurrency: 2 }, pending: true },
    };
    const { job: made } = await board.call('POST', 'jobs', {
      ...{ type: 'invoice.send', args: [1], version: '2.1', options: { ...options, queue: 'job.options' } },
    });
    const page = await open(made.id);
    const facts = page.locator('.facts').first();
    const told = await facts.locator('div').evaluateAll((rows) => rows.map((row) => row.innerText.split('\n')));
    const shown = Object.fromEntries(told.map(([name, ...value]) => [name.toLowerCase(), value.join(' ')]));
    assert.deepEqual(
      ['time limit', 'lease', 'tags', 'retention', 'unique by', 'counts under', 'version'].map((name) => shown[name]),
      ['1 min 30 s', '5 min', 'eu', 'completed 2d', 'type, args for 1 h', 'job.options', '2.1'],
    );
  });

  it('tells its whole story', async () => {
    const { id, parent, child } = await eventful('job.story');
    const page = await open(id);
    assert.equal(await page.title(), 'invoice.send · Tocsin');
    await state(page, 'active').waitFor();
    const facts = page.locator('.facts').first();
    for (const name of ['Created', 'First run', 'Last run', 'Heartbeat', 'Lease ends']) {
      await facts.getByText(name, { exact: true }).waitFor();
    }
    assert.equal(await facts.getByText('Total time').count(), 0, 'it has not ended');
    const trace = page.getByRole('table', { name: 'Trace' });
    const row = (name) => trace.getByRole('row', { name });
    await row(/^Attempt 3 active/).waitFor();
    await trace.getByText('connect ETIMEDOUT 2', { exact: true }).waitFor();
    assert.equal(await trace.getByRole('row', { name: /^Attempt/ }).count(), 3);
    await row(/^Attempt 1 failed SmtpError connect ETIMEDOUT 1/)
      .getByRole('button')
      .click();
    const stack = trace.locator('.code').filter({ hasText: 'SmtpError: connect ETIMEDOUT 1' });
    const [lines, copy] = await Promise.all(['pre', 'button'].map((part) => stack.locator(part).boundingBox()));
    assert.ok(lines.x + lines.width <= copy.x, 'the button covers no line');
    const log = section(page, 'Log');
    await log.getByText('begins 1').waitFor();
    await log.getByLabel('Minimum level').selectOption('warn');
    await page.waitForURL('**?level=warn');
    await log.getByText('slow').waitFor();
    assert.equal(await log.getByText('begins 1').count(), 0);
    await page.getByText('page 4 of 10').first().waitFor();
    await section(page, 'Checkpoint').getByText('"page"').waitFor();
    await section(page, 'Checkpoint')
      .getByText(/^no\. 1, (now|\d+ s ago)$/)
      .waitFor();
    await row(/^Progress 40 % page 4 of 10/).waitFor();
    await row(/^Checkpoint 1/).waitFor();
    await row(/^charge step done/)
      .getByRole('button')
      .click();
    await trace.getByText('"charged"').waitFor();
    await section(page, 'Meta').getByText('"acme"').waitFor();
    assert.match(
      await page.getByRole('link', { name: 'nightly' }).getAttribute('href'),
      /\/ui\/schedules\?open=nightly$/,
    );
    const runsOn = page.getByRole('link', { name: worker_id, exact: true });
    assert.equal(new URL(await runsOn.getAttribute('href'), page.url()).searchParams.get('worker'), worker_id);
    const related = section(page, 'Related jobs');
    await related.locator(`a[href$="${child}"]`).waitFor();
    await related.locator(`a[href$="${parent}"]`).click();
    await page.getByRole('heading', { level: 1, name: 'parent.job' }).waitFor();
    await page.goBack();
    await page.getByRole('button', { name: 'Copy curl command' }).click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, `curl -s '${board.open}/ojs/v1/admin/jobs/${id}?timeline=true'`);
  });

  it('shows what it waits for, in one way everywhere, and sends the signal', async () => {
    const { job: made } = await board.call('POST', 'jobs', {
      ...{ type: 'work.confirm', args: [{ order: 7 }], options: { queue: 'job.signal' } },
    });
    const page = await open(made.id);
    await live(page);
    const why = page.getByRole('complementary', { name: 'Why it waits' });
    await why.getByText(/^Waiting for confirmed, 1 d 23 h left$/).waitFor();
    await why.getByText(`POST /jobs/${made.id}/signals/confirmed`).waitFor();
    const words = await page.locator('main').innerText();
    assert.doesNotMatch(words, /No attempts yet|:id|\d{4}-\d\d-\d\dT/);
    const trace = page.getByRole('table', { name: 'Trace' });
    await trace.getByRole('row', { name: /^Attempt 1 asleep/ }).waitFor();
    await page.locator('.facts').first().getByText('1 of 3', { exact: true }).waitFor();
    await trace.getByRole('row', { name: /^confirmed waits for the signal/ }).waitFor();
    await assertAccessible(page);
    await why.getByRole('button', { name: 'Send signal' }).click();
    const dialog = page.getByRole('dialog', { name: 'Send confirmed' });
    await dialog.getByLabel('Payload').fill('{"by": ');
    await dialog.locator('.field .error').waitFor();
    await dialog.getByLabel('Payload').fill('{"by": "ada"}');
    await dialog.getByRole('button', { name: 'Send signal' }).click();
    await state(page, 'completed').waitFor({ timeout: SOON_MS });
    assert.deepEqual((await job(made.id)).result, { paid: { by: 'ada' } });
    const viewer = await board.callClosed(KEYS.operator, 'POST', 'jobs', {
      ...{ type: 'work.confirm', args: [], options: { queue: 'job.signal' } },
    });
    const seen = await open(viewer.job.id, { key: KEYS.viewer });
    await seen.getByText(/^Waiting for confirmed/).waitFor();
    assert.equal(await seen.getByRole('button', { name: 'Send signal' }).count(), 0);
  });

  it('follows a wait for children down to what the deepest one waits for', async () => {
    const { job: made } = await board.call('POST', 'jobs', {
      ...{ type: 'work.nested', args: [3], options: { queue: 'job.nested' } },
    });
    for (let id = made.id, reason; reason !== 'signal'; ) {
      const { waiting_for: waiting } = await job(id);
      ({ reason, job_id: id = id } = waiting ?? {});
      await delay(50);
    }
    const page = await open(made.id);
    const why = page.getByRole('complementary', { name: 'Why it waits' });
    await why.getByText(/^Waiting for level 3, 59 min( \d+ s)? left$/).waitFor();
    const below = why.getByRole('list', { name: 'Jobs that it waits for' }).getByRole('listitem');
    await below
      .nth(2)
      .getByText(/^Waiting for approved, 29 min( \d+ s)? left$/)
      .waitFor();
    assert.equal(await below.count(), 3);
    assert.equal(await why.getByRole('button', { name: 'Send signal' }).count(), 0);
    const trace = page.getByRole('table', { name: 'Trace' });
    await trace.getByRole('row', { name: /^level 3 waits for the child/ }).waitFor();
    await assertFitForAll(page);
    await below.nth(2).getByRole('link').click();
    await why.getByRole('button', { name: 'Send signal' }).waitFor();
  });

  it('draws a durable run on one time axis, and opens what each part of it left', async () => {
    const { job: made } = await board.call('POST', 'jobs', {
      ...{ type: 'work.durable', args: [], options: { queue: 'job.durable' } },
    });
    const page = await open(made.id);
    const trace = page.getByRole('table', { name: 'Trace' });
    const row = (name) => trace.getByRole('row', { name });
    await row(/^approved waits for the signal/).waitFor();
    await board.call('POST', `jobs/${made.id}/signals/approved`, { payload: { by: 'ada' } });
    await row(/^cooling sleeps/).waitFor({ timeout: SOON_MS });
    const names = await trace
      .locator('tbody th')
      .evaluateAll((cells) => cells.map((cell) => cell.querySelector('bdi').textContent));
    assert.deepEqual(names, ['Created', 'Attempt 1', 'charge', 'approved', 'ship', 'cooling']);
    await page.getByText(/^The start of a step is not recorded/).waitFor();
    // What has no time of its own lies between the moments on record around it.
    const timesOf = async (name) => {
      const text = await row(name).locator('.track').textContent();
      return /^(between|from) (.+) (?:and|to) (.+)$/.exec(text).slice(1);
    };
    const [charge, approved, ship, cooling] = await Promise.all(
      [/^charge/, /^approved/, /^ship/, /^cooling/].map(timesOf),
    );
    assert.deepEqual(
      [charge, approved, ship].map(([word]) => word),
      ['between', 'between', 'between'],
    );
    assert.equal(charge[2], approved[1], 'the wait began after the step had ended');
    assert.equal(ship[1], approved[2], 'it began after the signal');
    assert.equal(cooling[0], 'from', 'when a sleep began is on record');
    await row(/^approved signal received/)
      .getByRole('button', { expanded: false })
      .focus();
    await page.keyboard.press('Enter');
    await trace.getByText('"by"').waitFor();
    assert.equal(
      await row(/^approved/)
        .getByRole('button', { expanded: true })
        .count(),
      1,
    );
    await row(/^cooling/)
      .getByRole('button')
      .click();
    await trace.getByText(/^in 1 d 1\d h$/).waitFor();
    await assertAccessible(page);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await assertNoSideways(page);
    await assertAccessible(page);
  });

  it('runs a job again from one of its steps, and says what it forgets', async () => {
    const id = await worker.enqueue('job.restart', { retry: { max_attempts: 1 } });
    await worker.take('job.restart');
    for (const name of ['charge', 'ship', 'ask']) await board.call('PUT', `jobs/${id}/steps/${name}`, { result: name });
    await worker.nack(id, { message: 'in vain' });
    const page = await open(id);
    const trace = page.getByRole('table', { name: 'Trace' });
    await trace.getByRole('row', { name: /^ship/ }).getByRole('button').click();
    await trace.getByRole('button', { name: 'Run again from here' }).click();
    await page.getByText('The job forgets ship, ask, and runs them again.').waitFor();
    await assertAccessible(page);
    await page.getByRole('button', { name: 'Run again', exact: true }).click();
    await state(page, 'available').waitFor({ timeout: SOON_MS });
    const { steps } = await board.call('GET', `jobs/${id}/steps`);
    assert.deepEqual(Object.keys(steps), ['charge']);
    await trace
      .getByRole('row', { name: /^charge/ })
      .getByRole('button')
      .click();
    await trace.getByRole('button', { name: 'Fork from here' }).click();
    await page.getByRole('button', { name: 'Fork', exact: true }).click();
    await page.waitForURL((url) => url.pathname.includes('/ui/jobs/') && !url.pathname.endsWith(id));
    await page.locator('.identity .badge').getByText('available', { exact: true }).waitFor({ timeout: SOON_MS });
  });

  it('draws a part of 500 steps, and more of them on request', async () => {
    const id = await worker.enqueue('job.steps');
    await worker.take('job.steps');
    const steps = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`page-${n}`, { result: n }]));
    const page = await open(id, {
      width: 390,
      prepare: (fresh) =>
        fresh.route(/\/admin\/jobs\/[^/]+\?timeline/, async (route) => {
          const answer = await route.fetch();
          await route.fulfill({ json: { ...(await answer.json()), steps } });
        }),
    });
    const trace = page.getByRole('table', { name: 'Trace' });
    await trace.getByText('page-499').waitFor();
    const shown = () => trace.locator('tbody tr').count();
    assert.equal(await shown(), 60);
    await assertNoSideways(page);
    await page.getByRole('button', { name: '442 earlier' }).click();
    assert.equal(await shown(), 300);
  });

  it('changes within a second of what happens', async () => {
    const id = await worker.enqueue('job.live');
    const page = await open(id);
    await Promise.all([live(page), page.getByText('It waits for a worker to fetch it').waitFor()]);
    await worker.take('job.live');
    await state(page, 'active').waitFor({ timeout: SOON_MS });
    await board.call('POST', `jobs/${id}/log`, { worker_id, lines: [{ message: 'halfway there' }] });
    await section(page, 'Log').getByText('halfway there').waitFor({ timeout: SOON_MS });
    await board.call('POST', `jobs/${id}/progress`, { worker_id, progress: 0.5, message: 'half' });
    await page.getByText('50 %').first().waitFor({ timeout: SOON_MS });
    await worker.ack(id, { sum: 42 });
    await state(page, 'completed').waitFor({ timeout: SOON_MS });
    await section(page, 'Result').getByText('42').waitFor();
  });

  it('says why it waits, with the way to what ends the wait', async () => {
    const id = await worker.enqueue('job.paused');
    await board.call('POST', 'queues/job.paused/pause');
    const page = await open(id);
    const why = page.getByRole('complementary', { name: 'Why it waits' });
    await why.getByText('Its queue is paused').waitFor();
    await why.getByRole('link', { name: 'Resume the queue' }).click();
    await page.waitForURL('**/ui/queues/job.paused');
  });

  it('draws the delays of its retries, and writes them as a table', async () => {
    const retry = { max_attempts: 4, initial_interval: 'PT1S', backoff_coefficient: 3, jitter: false };
    const page = await open(await worker.enqueue('job.curve', { retry }));
    const retries = section(page, 'Retries');
    await retries.getByRole('img', { name: /after failure 1 1 s, after failure 2 3 s, after failure 3 9 s/ }).waitFor();
    await retries.getByRole('button', { name: 'As a table' }).click();
    assert.deepEqual(await retries.locator('tbody td:nth-child(2)').allTextContents(), ['1 s', '3 s', '9 s']);
    assert.equal(await retries.locator('tbody tr').last().locator('td').last().textContent(), '13 s');
  });

  it('is retried, at once or with other arguments, which the server checks', async () => {
    const id = await worker.dead('job.again', { message: 'no' }, { args: ['wrnog'] });
    const page = await open(id);
    await page.getByText('dead letter', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Edit and retry' }).click();
    await page.waitForURL('**?open=edit');
    const drawer = page.getByRole('dialog', { name: 'Edit and retry' });
    await drawer.getByLabel('Arguments').fill('{"not": "a list"}');
    await drawer.getByRole('button', { name: 'Retry' }).click();
    await drawer.locator('.field.wrong', { hasText: 'Arguments' }).getByRole('alert').waitFor();
    await assertAccessible(page);
    await drawer.getByLabel('Arguments').fill('["right"]');
    await drawer.getByLabel('Priority').fill('7');
    await drawer.getByRole('button', { name: 'Retry' }).click();
    await page.getByText('It runs again.').waitFor();
    await state(page, 'available').waitFor();
    const { args, priority } = await job(id);
    assert.deepEqual([args, priority], [['right'], 7]);
    const other = await worker.dead('job.again', { message: 'no' }, { priority: 50 });
    const second = await open(other);
    await second.keyboard.press('r');
    await state(second, 'available').waitFor();
  });

  it('runs now, gets another priority, and is cancelled', async () => {
    const id = await worker.enqueue('job.now', { delay_until: '+PT1H' });
    const page = await open(id);
    await state(page, 'scheduled').waitFor();
    await button(page, 'Run now').click();
    await state(page, 'available').waitFor();
    await button(page, 'Priority').click();
    await page.getByRole('dialog').getByLabel('Priority').fill('33');
    await page.getByRole('dialog').getByRole('button', { name: 'Change' }).click();
    await page.locator('.facts').getByText('33').waitFor();
    await page.keyboard.press('c');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the job' }).click();
    await state(page, 'cancelled').waitFor();
    assert.equal((await job(id)).state, 'cancelled');
  });

  it('is cloned into another queue', async () => {
    const id = await worker.enqueue('job.first', { args: [1], meta: { tenant: 7 }, delay_until: '+PT1H' });
    const page = await open(id);
    await page.getByRole('link', { name: 'Clone' }).click();
    const drawer = page.getByRole('dialog', { name: 'Clone' });
    await drawer.getByLabel('Arguments').fill('[2]');
    await drawer.getByLabel('Queue').fill('job.second');
    await drawer.getByRole('button', { name: 'Enqueue' }).click();
    await state(page, 'available').waitFor();
    const made = page.url().split('/').at(-1);
    assert.notEqual(made, id);
    const { args, queue, meta } = await job(made);
    assert.deepEqual([args, queue, meta], [[2], 'job.second', { tenant: 7, cloned_from: id }]);
  });

  it('is deleted once the end of its id was typed, and is not found from then on', async () => {
    const id = await worker.dead('job.gone', { message: 'no' });
    const page = await open(id);
    await button(page, 'Delete').click();
    const dialog = page.getByRole('dialog', { name: 'Delete this job?' });
    await dialog.getByRole('textbox').fill(id.slice(-6));
    await dialog.getByRole('button', { name: 'Delete the job' }).click();
    await page.waitForURL('**/ui/jobs');
    await page.goto(`/ui/jobs/${id}`);
    await page.getByRole('heading', { name: 'Job not found' }).waitFor();
    await assertAccessible(page);
  });

  it('shows hostile payloads as text', async () => {
    const html = '<img src=x onerror="document.title=1"><script>document.title=1</script>';
    const rtl = '\u202egnp.exe\u202c';
    const long = 'y'.repeat(900_000);
    const args = [
      html,
      rtl,
      long,
      JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}'),
      Array(500).fill(0),
    ];
    const meta = { [html.slice(0, 40)]: html };
    const id = await worker.dead(
      'job.hostile',
      { type: html, message: html, stack: `${html}\n`.repeat(20) },
      { args, tags: [html.slice(0, 60)] },
    );
    await worker.enqueue('job.hostile', { meta });
    const page = await open(id);
    const shown = section(page, 'Arguments');
    await shown.getByText('onerror').waitFor();
    await shown.getByText('"__proto__"').waitFor();
    await shown.getByText('polluted').waitFor();
    assert.equal(await page.evaluate(() => ({}).polluted), undefined);
    assert.equal(await page.locator('main img[src], main script').count(), 0);
    assert.equal(await page.title(), 'wait.here · Tocsin');
    // What comes from outside keeps its direction to itself.
    assert.equal(await shown.locator('bdi', { hasText: 'gnp.exe' }).count(), 1);
    // Long ones are cut until they are asked for.
    const size = () => shown.evaluate((element) => element.textContent.length);
    assert.ok((await size()) < 5_000, `${await size()} characters are shown`);
    await shown.getByRole('button', { name: /more$/ }).first().click();
    assert.ok((await size()) > 50_000);
    await shown.getByRole('button', { name: 'Copy arguments' }).click();
    assert.deepEqual(JSON.parse(await page.evaluate(() => navigator.clipboard.readText()))[2], long);
    await assertNoSideways(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await assertNoSideways(page);
    await page.goto('/ui/jobs?queue=job.hostile');
    await page.locator('table[aria-label=Jobs] tbody tr').nth(1).waitFor();
    assert.equal(await page.locator('main img[src], main script').count(), 0);
    await assertNoSideways(page);
  });

  it('shows numbers with all the digits that the server tells', async () => {
    const id = await worker.enqueue('job.exact', { args: [1] });
    const page = await open(id, {
      prepare: (fresh) =>
        fresh.route(/\/admin\/jobs\/[^/]+\?timeline/, async (route) => {
          const answer = await route.fetch();
          const body = (await answer.text()).replace('"args":[1]', '"args":[12345678901234567890,1.10]');
          await route.fulfill({ body, contentType: 'application/json' });
        }),
    });
    const shown = section(page, 'Arguments');
    await shown.getByText('12345678901234567890').waitFor();
    await shown.getByText('1.10').waitFor();
    await shown.getByRole('button', { name: 'Copy arguments' }).click();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /12345678901234567890,\s+1\.10/);
  });

  it('offers nothing to a key that may only read, which the server refuses as well', async () => {
    const { job: made } = await board.callClosed(KEYS.operator, 'POST', 'jobs', {
      ...{ type: 'wait.here', args: [], options: { queue: 'job.viewer', delay_until: '+PT1H' } },
    });
    const page = await open(made.id, { key: KEYS.viewer });
    await state(page, 'scheduled').waitFor();
    assert.equal(await page.locator('.page-head').locator('button:not(.copy), a.button').count(), 0);
    await page.goto(`/ui/jobs/${made.id}?open=clone`);
    await state(page, 'scheduled').waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
    for (const verb of ['retry', 'activate', 'cancel', 'clone']) {
      await assert.rejects(board.callClosed(KEYS.viewer, 'POST', `admin/jobs/${made.id}/${verb}`, {}), /: 403 /, verb);
    }
    await assert.rejects(board.callClosed(KEYS.viewer, 'PATCH', `admin/jobs/${made.id}`, { priority: 1 }), /: 403 /);
  });

  it('keeps what is hidden from a key, also where it edits the rest', async () => {
    const args = [{ user: 'ada', password: 'lovelace' }];
    const closed = puller((...request) => board.callClosed(KEYS.admin, ...request));
    const id = await closed.dead('job.hidden', { message: 'no' }, { args });
    const page = await open(id, { key: KEYS.operator });
    await section(page, 'Arguments').getByText('"[redacted]"').waitFor();
    await page.getByRole('link', { name: 'Edit and retry' }).click();
    const drawer = page.getByRole('dialog', { name: 'Edit and retry' });
    await drawer.getByText('Parts are hidden from your key').waitFor();
    await drawer.getByLabel('Arguments').fill('[{"user": "grace", "password": "[redacted]"}]');
    await drawer.getByRole('button', { name: 'Retry' }).click();
    await drawer.locator('.field.wrong', { hasText: 'Arguments' }).getByRole('alert').waitFor();
    await drawer.getByLabel('Arguments').fill(JSON.stringify([{ user: 'ada', password: '[redacted]' }], undefined, 2));
    await drawer.getByLabel('Meta').fill('{"by": "operator"}');
    await drawer.getByRole('button', { name: 'Retry' }).click();
    await state(page, 'available').waitFor();
    const kept = await board.callClosed(KEYS.admin, 'GET', `admin/jobs/${id}`);
    assert.deepEqual([kept.args, kept.meta], [args, { by: 'operator' }]);
    await page.goto('/ui/jobs?queue=job.hidden');
    await page.locator('table[aria-label=Jobs] tbody tr').first().waitFor();
    assert.equal(await page.getByRole('button', { name: 'Delete' }).count(), 0);
  });

  it('has nothing that axe finds wrong, in both themes, wide or narrow', async () => {
    const { id } = await eventful('job.axe');
    const page = await open(id, { theme: 'light' });
    await section(page, 'Retries').getByRole('img').waitFor();
    await assertAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await assertNoSideways(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await assertAccessible(page);
  });
});
