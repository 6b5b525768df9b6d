// Workflows: the list, and the graph of one.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { assertSound, dashboard, KEYS } from './support/index.mjs';

describe('workflows', { timeout: 900_000 }, () => {
  const board = dashboard();
  const step = (type, arg = {}) => ({ type, args: [arg], options: { queue: 'flows', retry: { max_attempts: 1 } } });
  const start = (name, more) => board.call('POST', 'workflows', { name, ...more });
  const isState = async (id, state) => {
    for (;;) {
      const found = await board.call('GET', `workflows/${id}`);
      if (found.state === state) return found;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const lives = (page) => page.getByRole('button', { name: /^Live updates: Live/ }).waitFor();
  let done;
  let failed;
  before(async () => {
    done = await start('flow done', {
      steps: [
        { id: 'users', ...step('work.do', { ms: 5 }) },
        // So much longer that the way over it is the critical path on a busy machine, too.
        { id: 'orders', ...step('work.do', { ms: 3_000 }) },
        { id: 'files', depends_on: ['users'], type: 'group', jobs: [step('work.do'), step('work.do')] },
        { id: 'prices', depends_on: ['orders'], ...step('work.do') },
        { id: 'tell', depends_on: ['files', 'prices'], ...step('work.do') },
      ],
    });
    failed = await start('flow failed', {
      type: 'chain',
      steps: [step('work.do'), step('work.do', { fail: 'card declined', final: true }), step('work.do')],
    });
    await isState(done.id, 'completed');
    await isState(failed.id, 'failed');
  });

  it('are listed with how far they are, and notified of as they start and end', async () => {
    const page = await board.newPage('/ui/workflows');
    await page.getByRole('row').filter({ hasText: 'flow done' }).getByText('6 of 6').waitFor();
    await page.getByRole('row').filter({ hasText: 'flow failed' }).getByText('1 failed').waitFor();
    await lives(page);
    const { id } = await start('flow later', { type: 'chain', steps: [step('work.do', { ms: 300 }), step('work.do')] });
    // Nothing moves under the pointer: it is shown when it is asked for.
    await page.getByRole('button', { name: /newer/ }).click();
    const later = page.getByRole('row').filter({ hasText: 'flow later' });
    await later.getByText('completed', { exact: true }).waitFor();
    await later.getByText('2 of 2').waitFor();
    await page.getByLabel('State').selectOption('failed');
    await later.waitFor({ state: 'detached' });
    assert.match(page.url(), /state=failed/);
    await page.goBack();
    await page.getByRole('link', { name: 'flow later' }).click();
    await page.waitForURL(`**/ui/workflows/${id}`);
  });

  it('show their graph, whose nodes lead to the jobs by pointer and by keyboard', async () => {
    const page = await board.newPage(`/ui/workflows/${done.id}`);
    const graph = page.getByRole('region', { name: 'Graph of the workflow' });
    const node = (name) => graph.getByRole('link', { name });
    await node(/^tell completed/).waitFor();
    const place = async (name) => await node(name).boundingBox();
    const [orders, prices, tell] = await Promise.all([place(/^orders/), place(/^prices/), place(/^tell/)]);
    assert.ok(orders.x < prices.x && prices.x < tell.x);
    assert.equal(await graph.locator('svg:not(.icon) path').count(), 6);
    // The way over orders took longest.
    await page.getByTitle(/^orders.*on the critical path$/).waitFor();
    assert.equal(await page.getByTitle(/^users.*on the critical path$/).count(), 0);
    await graph.focus();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/ui\/jobs\//);
    await page.goBack();
    await node(/^tell/).waitFor();
  });

  it('list their steps with results, at a URL of their own', async () => {
    const page = await board.newPage(`/ui/workflows/${done.id}?tab=steps`);
    await page.getByRole('row').filter({ hasText: 'files / 1' }).waitFor();
    await page.getByRole('link', { name: 'prices', exact: true }).click();
    await page.getByRole('dialog', { name: 'prices' }).getByText('"done"').waitFor();
    await page.goto(`/ui/workflows/${failed.id}?tab=steps&open=1`);
    await page.getByRole('dialog', { name: '1' }).getByText('card declined').waitFor();
  });

  it('change as their jobs do, and are cancelled', async () => {
    const { id } = await start('flow waits', {
      type: 'chain',
      // Long enough for a page to be there before it ends.
      steps: [step('work.do', { ms: 3_000 }), step('wait.for.worker'), step('work.do')],
    });
    const page = await board.newPage(`/ui/workflows/${id}`);
    const graph = page.getByRole('region', { name: 'Graph of the workflow' });
    await graph.getByRole('link', { name: /^wait.for.worker pending/ }).waitFor();
    await graph.getByRole('link', { name: /^work.do completed/ }).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Cancel the workflow' }).click();
    await graph.getByRole('link', { name: /^wait.for.worker cancelled/ }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Cancel' }).count(), 0);
    assert.equal((await board.call('GET', `workflows/${id}`)).state, 'cancelled');
  });

  it('have their failed steps retried', async () => {
    const page = await board.newPage(`/ui/workflows/${failed.id}`);
    await page.getByRole('button', { name: 'Retry failed steps' }).click();
    await page.getByRole('button', { name: 'Retry 1 failed job' }).click();
    await page.getByText('They are retried.').waitFor();
    const [, { job_id: id }] = failed.steps.length ? (await board.call('GET', `workflows/${failed.id}`)).steps : [];
    const job = await board.call('GET', `admin/jobs/${id}`);
    assert.ok(['available', 'active', 'discarded'].includes(job.state), job.state);
    const { items } = await board.call('GET', 'admin/audit?action=jobs.retry');
    assert.ok(items.some(({ filter }) => filter.job_ids.includes(id)));
  });

  it('say so where there is none', async () => {
    const page = await board.newPage('/ui/workflows/01a20332-cac6-74cb-8d09-1fc9f5aeb3ac');
    await page.getByRole('main').getByRole('alert').getByRole('button', { name: 'Try again' }).waitFor();
    await page.getByRole('link', { name: 'Workflows' }).first().click();
    await page.getByRole('link', { name: 'flow done' }).waitFor();
  });

  it('are only looked at by a viewer', async () => {
    const { id } = await board.callClosed(KEYS.operator, 'POST', 'workflows', {
      ...{ name: 'flow closed', type: 'chain', steps: [{ type: 'a.b', args: [], options: { queue: 'flows' } }] },
    });
    const page = await board.newPage(`/ui/workflows/${id}`, { key: KEYS.viewer });
    await page.getByRole('link', { name: /^a.b pending/ }).waitFor();
    assert.equal(await page.getByRole('button', { name: /Cancel|Retry/ }).count(), 0);
  });

  it('are sound in both themes, wide or narrow', async () => {
    const page = await board.newPage('/ui/workflows');
    await page.getByRole('link', { name: 'flow failed' }).first().waitFor();
    await assertSound(page);
    await page.getByRole('link', { name: 'flow failed' }).first().click();
    await page.getByRole('region', { name: 'Graph of the workflow' }).waitFor();
    await assertSound(page);
    await page.getByRole('link', { name: /^Steps/ }).click();
    await page.getByRole('table', { name: 'Steps' }).waitFor();
    await assertSound(page);
  });
});
