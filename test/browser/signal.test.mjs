// The page behind a signal URL, which a person opens on a phone.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { assertSound, dashboard } from './support/index.mjs';

describe('the page of a signal URL', { timeout: 900_000 }, () => {
  const board = dashboard();

  /** A job that waits to be confirmed, and the path of a URL that confirms it. */
  async function asked(request) {
    const { job } = await board.call('POST', 'jobs', { type: 'work.confirm', args: [] });
    while ((await board.call('GET', `jobs/${job.id}`)).job.waiting_for?.reason !== 'signal') await delay(50);
    const { url } = await board.call('POST', `jobs/${job.id}/tokens`, { signal: 'confirmed', ...request });
    return { id: job.id, path: new URL(url).pathname };
  }

  async function ended(id) {
    for (;;) {
      const { job } = await board.call('GET', `jobs/${id}`);
      if (job.state === 'completed') return job.result;
      await delay(50);
    }
  }

  const title = `Refund order “17” <b>of</b> ${'大'.repeat(60)}?`;
  const choices = ['refund', 'refuse', 'ask again tomorrow, when the accountant is back from 休暇'];

  it('asks its question with a button for each choice, and sends the one that is pressed', async () => {
    const { id, path } = await asked({ title, choices, expires_in: '1h' });
    const page = await board.newPage(path, { width: 360 });
    await page.getByRole('heading', { name: title }).waitFor();
    assert.deepEqual(await page.getByRole('button').allInnerTexts(), choices);
    for (const button of await page.getByRole('button').all()) {
      const { height, width } = await button.boundingBox();
      assert.ok(height >= 44 && width >= 44, 'a thumb fits on it');
    }
    await assertSound(page);
    // Whoever only looks has sent nothing.
    assert.equal((await board.call('GET', `jobs/${id}`)).job.waiting_for.reason, 'signal');
    await page.getByRole('button', { name: 'refuse' }).click();
    await page.getByText('Your answer was sent.').waitFor();
    assert.deepEqual(await ended(id), { paid: { choice: 'refuse' } });
  });

  it('has one button without choices, and says that it is too late afterwards', async () => {
    const { id, path } = await asked({ expires_in: '1h' });
    const page = await board.newPage(path, { theme: 'dark', width: 360 });
    await page.getByRole('heading', { name: 'confirmed' }).waitFor();
    await page.getByRole('button', { name: 'Confirm' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('Your answer was sent.').waitFor();
    assert.deepEqual(await ended(id), { paid: null });
    const again = await board.newPage(path, { width: 360, expect: /status of 409/ });
    await again.getByRole('button', { name: 'Confirm' }).click();
    await again.getByText(/answered before|too late/).waitFor();
    await assertSound(again);
  });

  it('says so where the link is cut off, or has expired', async () => {
    const { path } = await asked({ expires_in: '1s' });
    const cut = await board.newPage(path.slice(0, -4), { width: 360, expect: /status of 404/ });
    await cut.getByText('This link is not valid.').waitFor();
    await delay(1_100);
    const late = await board.newPage(path, { width: 360, expect: /status of 410/ });
    await late.getByText('This link has expired.').waitFor();
    assert.equal(await late.getByRole('button').count(), 0);
  });
});
