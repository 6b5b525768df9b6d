// The feed of events: what is shown of it, and what is done with it.
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { assertSound, dashboard, KEYS } from './support/index.mjs';

describe('the events page', { timeout: 900_000 }, () => {
  const board = dashboard();
  const enqueue = (type, queue, args = [{}]) => board.call('POST', 'jobs', { type, args, queue });
  const row = (page, text) => page.getByRole('row').filter({ hasText: text });
  // Events are in memory for some seconds only: each test makes its own.
  beforeEach(async () => {
    await enqueue('events.first', 'feed.a');
    await enqueue('work.do', 'feed.a', [{ fail: 'it <b>broke</b>', final: true }]);
  });

  it('filters by event, queue, job type and text, in what was and in what comes', async () => {
    await enqueue('other.kind', 'feed.a');
    const page = await board.newPage('/ui/events?queue=feed.a');
    await row(page, 'job.discarded').getByText('it <b>broke</b>').first().waitFor();
    await row(page, 'other.kind').waitFor();
    await page.getByRole('combobox', { name: 'Event' }).selectOption('job.enqueued');
    await row(page, 'job.discarded').waitFor({ state: 'detached' });
    await page.getByRole('searchbox', { name: 'Job type' }).fill('events.*');
    await row(page, 'other.kind').waitFor({ state: 'detached' });
    await row(page, 'events.first').waitFor();
    assert.match(page.url(), /queue=feed.a&event=job.enqueued&type=events/);
    await page.getByRole('button', { name: /^Live updates: Live/ }).waitFor();
    await enqueue('other.later', 'feed.a');
    await enqueue('events.later', 'feed.a');
    await row(page, 'events.later').waitFor();
    assert.equal(await row(page, 'other.later').count(), 0);
    await page.getByRole('searchbox', { name: /^Id, subject/ }).fill('no such text');
    await page.getByRole('heading', { name: 'No matching events' }).waitFor();
  });

  it('has nothing since the queues woke, and links to older events', async () => {
    const page = await board.newPage('/ui/events?queue=feed.empty');
    await page.getByRole('heading', { name: 'Nothing since the queues woke' }).waitFor();
    await page.locator('.empty').getByRole('link', { name: 'audit log' }).click();
    await page.waitForURL('**/ui/audit');
  });

  it('holds events while it is paused, and says how many', async () => {
    await enqueue('before.pause', 'feed.b');
    const page = await board.newPage('/ui/events?queue=feed.b');
    await page.getByRole('button', { name: /^Live updates: Live/ }).waitFor();
    const main = page.getByRole('main');
    await main.getByRole('button', { name: /^Pause/ }).click();
    await enqueue('held.one', 'feed.b');
    await main.getByRole('button', { name: /^Resume, [1-9]\d* held/ }).waitFor();
    assert.equal(await row(page, 'held.one').count(), 0);
    await main.getByRole('button', { name: /^Resume/ }).click();
    await row(page, 'held.one').waitFor();
  });

  it('copies what is shown, a line of JSON for each, and one from its drawer', async () => {
    await enqueue('copied.kind', 'feed.a');
    const page = await board.newPage('/ui/events?queue=feed.a&event=job.enqueued&type=copied.kind');
    await row(page, 'copied.kind').waitFor();
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    await page.getByText('1 events copied').waitFor();
    const { event, data } = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.equal(event, 'job.enqueued');
    assert.equal(data.queue, 'feed.a');
    await row(page, 'copied.kind').getByRole('link').last().click();
    const drawer = page.getByRole('dialog', { name: 'job.enqueued' });
    await drawer.getByRole('button', { name: 'Copy event', exact: true }).click();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /"job_type": "copied.kind"/);
  });

  it('is sound in both themes, wide or narrow', async () => {
    await board.callClosed(KEYS.operator, 'POST', 'jobs', { type: 'seen.by.viewer', args: [], queue: 'feed.c' });
    const page = await board.newPage('/ui/events?queue=feed.c', { key: KEYS.viewer });
    await row(page, 'seen.by.viewer').waitFor();
    await assertSound(page);
    await row(page, 'seen.by.viewer').getByRole('link').last().click();
    await page.getByRole('dialog', { name: 'job.enqueued' }).waitFor();
    await assertSound(page);
  });
});
