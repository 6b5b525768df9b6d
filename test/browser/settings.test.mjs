// Settings: what the deployment goes by, and what can be set of it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertSound, dashboard, KEYS } from './support/index.mjs';

describe('the settings page', { timeout: 900_000 }, () => {
  const board = dashboard();
  const row = (page, text) => page.getByRole('row').filter({ hasText: text });

  it('tells the configuration and the keys, never a key itself', async () => {
    const page = await board.newPage('/ui/settings', { key: KEYS.viewer });
    await row(page, 'API_KEYS').getByText('set, not shown').waitFor();
    await row(page, 'work.*').getByText('HANDLER').waitFor();
    await page.getByRole('link', { name: 'Keys', exact: true }).click();
    await row(page, 'operator of tests').getByText('admin:write').waitFor();
    assert.match(page.url(), /tab=keys/);
    for (const key of Object.values(KEYS)) assert.ok(!(await page.content()).includes(key));
    await page.goBack();
    await row(page, 'API_KEYS').waitFor();
  });

  it('creates a key, shows its secret once, rotates and revokes it', async () => {
    const page = await board.newPage('/ui/settings?tab=keys', { key: KEYS.admin });
    await page.getByRole('button', { name: 'New key' }).click();
    const form = page.getByRole('dialog', { name: 'New key' });
    await form.getByLabel('Name').fill('acme web');
    await form.getByLabel('Queues').fill('mail.*');
    await form.getByLabel('Groups').fill('a*b');
    await form.getByRole('button', { name: 'Create' }).click();
    await form.locator('.field.wrong', { hasText: 'Groups' }).getByRole('alert').waitFor();
    await form.getByLabel('Groups').fill('');
    await form.getByRole('button', { name: 'Create' }).click();
    const shown = page.getByRole('dialog', { name: 'The key' });
    const secret = /toc_\w{8}_[\w-]{43}/;
    const [made] = secret.exec(await shown.getByRole('status').innerText());
    await shown.getByRole('button', { name: 'I have copied it' }).click();
    await row(page, 'acme web').getByText('mail.*').waitFor();
    assert.ok(!(await page.content()).includes(made));
    await row(page, 'acme web').getByRole('button', { name: 'Rotate' }).click();
    await page.getByRole('button', { name: 'Create a new secret' }).click();
    assert.notEqual(secret.exec(await shown.getByRole('status').innerText())[0], made);
    await shown.getByRole('button', { name: 'I have copied it' }).click();
    await row(page, 'acme web').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('button', { name: 'Revoke the key' }).click();
    await page.getByText('No keys yet').waitFor();
    const viewer = await board.newPage('/ui/settings?tab=keys', { key: KEYS.viewer });
    await row(viewer, 'operator of tests').waitFor();
    assert.equal(await viewer.getByText('Made at run time').count(), 0);
  });

  it('tells what the code declares, and puts it into effect', async () => {
    const page = await board.newPage('/ui/settings?tab=deployment');
    await page.getByText('in effect', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.getByRole('button', { name: 'Apply now' }).click();
    await page.getByText('Applied.').waitFor();
    const { items } = await board.call('GET', 'admin/audit?action=deployment.apply');
    assert.ok(items.length > 0);
  });

  it('registers schemas, says what is wrong with one, changes the mode, and deletes them', async () => {
    const page = await board.newPage('/ui/settings?tab=schemas');
    await page.getByRole('button', { name: 'New schema' }).click();
    const made = page.getByRole('dialog', { name: 'New schema' });
    await made.getByLabel('Job type').fill('settings.bill');
    const schema = made.getByRole('textbox', { name: 'JSON Schema' });
    await schema.fill('{"kind": "object"}');
    await made.getByRole('button', { name: 'Register' }).click();
    await made.locator('.field.wrong', { hasText: 'JSON Schema' }).getByRole('alert').waitFor();
    await schema.fill('{"type": "object", "required": ["amount"]}');
    await made.getByRole('button', { name: 'Register' }).click();
    const drawer = page.getByRole('dialog', { name: 'settings.bill, version 1' });
    await drawer.getByText('"amount"').waitFor();
    await drawer.getByRole('button', { name: 'New version' }).click();
    const next = page.getByRole('dialog', { name: 'New version of settings.bill' });
    assert.equal(await next.getByLabel('Version').inputValue(), '2');
    await next.getByRole('button', { name: 'Register' }).click();
    await page.getByRole('dialog', { name: 'settings.bill, version 2' }).waitFor();
    const kept = await board.call('POST', 'jobs', { type: 'settings.bill', args: [{}], queue: 'settings.s' });
    assert.equal(kept.warnings.length, 1);
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete the schema' }).click();
    await row(page, 'urn:ojs:schema:settings.bill:2').waitFor({ state: 'detached' });
    await row(page, 'urn:ojs:schema:settings.bill:1').waitFor();
    const mode = page.getByLabel(/^Jobs that do not match/);
    await mode.selectOption('off');
    await page.getByText('Jobs that do not match are not validated.').waitFor();
    const { effective } = await board.call('GET', 'admin/queues/_default/config');
    assert.equal(effective.schemas, 'off');
    await mode.selectOption('warn');
    await page.getByText('Jobs that do not match are accepted with a warning.').waitFor();
    await board.call('DELETE', 'admin/schemas/settings.bill/1');
  });

  it('makes, changes and deletes pools', async () => {
    const page = await board.newPage('/ui/settings?tab=pools');
    await page.getByRole('button', { name: 'New pool' }).click();
    const made = page.getByRole('dialog', { name: 'New pool' });
    await made.getByRole('textbox', { name: 'Name' }).fill('settings-pool');
    await made.getByLabel('Strategy').selectOption('weighted');
    await made.getByLabel('Queues').fill('settings.a: 3, settings.b: 0');
    await made.getByRole('button', { name: 'Create' }).click();
    await made.locator('.field.wrong', { hasText: 'Queues' }).getByRole('alert').waitFor();
    await made.getByLabel('Queues').fill('settings.a: 3, settings.b');
    await made.getByRole('button', { name: 'Create' }).click();
    const pool = row(page, 'settings-pool');
    await pool.getByText('×3').waitFor();
    await page.getByRole('link', { name: 'settings-pool' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit settings-pool' });
    assert.equal(await edit.getByLabel('Queues').inputValue(), 'settings.a: 3, settings.b: 1');
    await edit.getByLabel('Maximum jobs running at once').fill('7');
    await edit.getByRole('button', { name: 'Save' }).click();
    await pool.getByText('of 7').waitFor();
    await pool.getByRole('button', { name: 'Delete settings-pool' }).click();
    await page.getByRole('button', { name: 'Delete the pool' }).click();
    await pool.waitFor({ state: 'detached' });
  });

  it('draws retry curves, whose policy stands in the URL', async () => {
    const page = await board.newPage('/ui/settings?tab=retry&strategy=constant&base=90&jitter=off&attempts=4');
    await page.getByRole('img', { name: /after failure 4 1 min 30 s$/ }).waitFor();
    await page.getByRole('button', { name: 'As a table' }).click();
    const delays = page.getByRole('table', { name: 'Delays' });
    assert.equal(await delays.locator('tbody tr').count(), 4);
    await page.getByLabel('Strategy').selectOption('exponential');
    await delays.getByText('12 min', { exact: true }).first().waitFor({ state: 'detached' });
    await page.getByLabel('Factor').fill('3');
    await page.waitForURL(/factor=3/);
    await page.getByLabel('First delay').fill('soon');
    await page.locator('.field.wrong', { hasText: 'First delay' }).getByRole('alert').waitFor();
  });

  it('sets what holds in this browser, and signs out', async () => {
    const page = await board.newPage('/ui/settings?tab=browser', { key: KEYS.operator });
    await page.getByText('admin:write', { exact: true }).waitFor();
    await page.getByLabel('Dark').check();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    await page.getByLabel(/^Pages change/).uncheck();
    await page.getByText(/^Paused, 0 events are held/).waitFor();
    await page.getByRole('main').getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
  });

  it('lets a viewer change nothing', async () => {
    const page = await board.newPage('/ui/settings?tab=schemas&edit=new', { key: KEYS.viewer });
    await page.getByRole('heading', { name: 'No schemas yet' }).waitFor();
    const none = async () => {
      assert.equal(await page.getByRole('main').getByRole('button').count(), 0);
      assert.equal(await page.getByRole('main').getByRole('combobox').count(), 0);
      assert.equal(await page.getByRole('dialog').count(), 0);
    };
    await none();
    await page.goto('/ui/settings?tab=pools&edit=:new');
    await page.getByRole('heading', { name: 'No pools yet' }).waitFor();
    await none();
    await page.goto('/ui/settings?tab=deployment');
    await page.getByText('in effect', { exact: true }).waitFor();
    await none();
  });

  it('is sound in both themes, wide or narrow', async () => {
    await board.call('PUT', 'admin/pools/settings-axe', { queues: ['settings.a', 'settings.b'] });
    const page = await board.newPage('/ui/settings');
    for (const [tab, sign] of [
      ['Configuration', page.getByText('ALLOW_LOCALHOST')],
      ['Deployment', page.getByText('in effect', { exact: true })],
      ['Schemas', page.getByLabel(/^Jobs that do not match/)],
      ['Pools', page.getByText('settings-axe')],
      ['Retry curve', page.getByRole('img', { name: /^Delays/ })],
      ['This browser', page.getByLabel('Dark')],
    ]) {
      await page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name: tab }).click();
      await sign.first().waitFor();
      await assertSound(page);
    }
    await board.call('DELETE', 'admin/pools/settings-axe');
  });
});
