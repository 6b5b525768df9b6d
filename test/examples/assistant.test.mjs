// The assistant in a browser: words as they come, a reload in the middle of an answer, and a person's approval.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { launchBrowser } from '../browser/support/browser.mjs';
import { dev } from '../docs/dev.mjs';
import { makeFolder } from './processes.mjs';

const WHOLE = 'You asked: Is it late? I have read the manual and an old letter. The short answer is that it depends.';

describe('the assistant', { timeout: 900_000 }, () => {
  const folder = makeFolder();
  let assistant;
  let browser;
  before(async () => {
    const places = { state: join(folder.path, 'state'), registry: join(folder.path, 'registry') };
    assistant = await dev(['examples/assistant/wrangler.toml'], places);
    browser = await launchBrowser();
  });
  after(async () => {
    await browser?.close();
    await assistant?.stop();
    folder.remove();
  });

  /** Asks, and waits until a part of the answer is there. */
  async function asked() {
    const page = await browser.newPage();
    page.setDefaultTimeout(120_000);
    await page.goto(assistant.url);
    await page.getByLabel('Question').fill('Is it late?');
    await page.getByRole('button', { name: 'Ask' }).click();
    await page.getByText('You asked:').waitFor();
    return page;
  }

  const wordsOf = (page) => page.locator('#answer').textContent();

  it('shows its words as they come, and all of them once after a reload', async () => {
    const page = await asked();
    const early = await wordsOf(page);
    assert.ok(WHOLE.startsWith(early), early);
    await page.reload();
    await page.getByRole('link', { name: 'Publish?' }).waitFor();
    assert.equal(await wordsOf(page), WHOLE);
    await page.reload();
    await page.getByRole('link', { name: 'Publish?' }).waitFor();
    assert.equal(await wordsOf(page), WHOLE);
  });

  /** A person decides in another tab. @returns the page, once it says what came of it */
  async function decided(choice, outcome) {
    const page = await asked();
    const path = await page.getByRole('link', { name: 'Publish?' }).getAttribute('href');
    const other = await browser.newPage();
    await other.goto(new URL(path, assistant.url).href);
    await other.getByRole('button', { name: choice }).click();
    await page.getByText(outcome).waitFor();
    return page;
  }

  it('is approved by a person in another tab', async () => {
    assert.equal(await wordsOf(await decided('publish', 'Published.')), WHOLE);
  });

  it('says so when the answer is discarded, also after a reload', async () => {
    const page = await decided('discard', 'Not published.');
    await page.reload();
    await page.getByText('Not published.').waitFor();
    assert.equal(await wordsOf(page), WHOLE);
  });
});
