// Webhooks: who is told, what was delivered, and the rules that raise an alarm.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { assertAccessible, assertSound, dashboard, KEYS } from './support/index.mjs';

describe('the webhooks page', { timeout: 900_000 }, () => {
  const board = dashboard();
  /** Answers as its path says, and remembers what it was sent. */
  const sent = [];
  const receiver = createServer((request, response) => {
    sent.push(request.headers['x-ojs-event-type']);
    request.resume().once('end', () => {
      response.writeHead(Number(request.url.slice(1, 4))).end('the receiver says so');
    });
  });
  let base;
  before(async () => {
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    base = `http://127.0.0.1:${receiver.address().port}`;
  });
  after(() => receiver.close());
  const subscribe = (path, more = {}) =>
    board.call('POST', 'webhooks/subscriptions', {
      ...{ url: `${base}/${path}`, events: ['job.enqueued'], filter: { queues: ['hooks.none'] } },
      ...more,
    });
  const row = (page, text) => page.getByRole('row').filter({ hasText: text });

  it('makes a webhook, shows its secret once, then changes, switches and deletes it', async () => {
    const page = await board.newPage('/ui/webhooks');
    await page.getByRole('button', { name: 'New webhook' }).click();
    const made = page.getByRole('dialog', { name: 'New webhook' });
    await made.waitFor();
    assert.match(page.url(), /edit=new/);
    assert.ok(await made.getByLabel('URL').evaluate((field) => field === document.activeElement));
    await made.getByLabel('URL').fill('https://10.0.0.1/made');
    assert.ok(await made.getByRole('button', { name: 'Create' }).isDisabled());
    await made.getByLabel('discarded').check();
    await made.getByLabel('queue.*').check();
    await made.getByLabel('Only these queues').fill('hooks.made, mail');
    await made.getByRole('button', { name: 'Create' }).click();
    await made.locator('.field.wrong', { hasText: 'URL' }).getByRole('alert').waitFor();
    await assertAccessible(page);
    await made.getByLabel('URL').fill(`${base}/204/made`);
    await made.getByRole('button', { name: 'Create' }).click();
    const secret = page.getByRole('dialog', { name: 'Webhook created' });
    await secret.getByText(/^whsec_/).waitFor();
    const first = await secret.locator('pre').innerText();
    await secret.getByRole('button', { name: 'Copy secret' }).click();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), first);
    await secret.getByRole('button', { name: 'I have copied it' }).click();
    const drawer = page.getByRole('dialog', { name: 'Webhook', exact: true });
    await drawer.getByText('hooks.made, mail').waitFor();
    assert.equal(await page.getByText(/whsec_/).count(), 0);
    await drawer.getByRole('button', { name: 'New secret' }).click();
    await page.getByRole('button', { name: 'Create a new secret' }).click();
    await drawer.getByText(/^whsec_/).waitFor();
    assert.notEqual(await drawer.locator('.secret pre').innerText(), first);
    await drawer.getByText('Both secrets sign until').waitFor();
    await drawer.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit the webhook' });
    assert.ok(await edit.getByLabel('queue.*').isChecked());
    await edit.getByLabel('queue.*').uncheck();
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    await drawer.getByText('queue.*').waitFor({ state: 'detached' });
    await drawer.getByText('The event', { exact: true }).waitFor();
    await drawer.getByRole('button', { name: 'Edit' }).click();
    await edit.getByLabel('Format').selectOption('Template');
    await edit.getByRole('textbox', { name: 'Template' }).fill('{"text": {{type}}}');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.locator('.field.wrong', { hasText: 'Template' }).getByRole('alert').waitFor();
    await assertAccessible(page);
    await edit.getByRole('textbox', { name: 'Template' }).fill('{"text": "{{type}}"}');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    await drawer.getByText('"text": "{{type}}"').waitFor();
    await drawer.getByRole('button', { name: 'Disable' }).click();
    await drawer.getByText('off', { exact: true }).waitFor();
    await drawer.getByRole('button', { name: 'Enable' }).click();
    await drawer.getByRole('button', { name: 'Disable' }).waitFor();
    await drawer.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete the webhook' }).click();
    await row(page, '204/made').waitFor({ state: 'detached' });
    const { items } = await board.call('GET', 'webhooks/subscriptions');
    assert.ok(!items.some(({ url }) => url.endsWith('/204/made')));
  });

  it('tries one, and tells what the receiver answered', async () => {
    const [good, bad] = await Promise.all([subscribe('200/try'), subscribe('500/try')]);
    const page = await board.newPage(`/ui/webhooks?open=${good.id}`);
    await page.getByRole('button', { name: 'Test' }).click();
    const answer = page.getByRole('status').filter({ hasText: /after \d/ });
    await answer.getByText('200').waitFor();
    await answer.getByText('the receiver says so').waitFor();
    assert.ok(sent.includes('webhook.test'));
    await page.goto(`/ui/webhooks?open=${bad.id}`);
    await page.getByRole('button', { name: 'Test' }).click();
    await answer.getByText('500').waitFor();
  });

  it('lists what was delivered as it happens, with answers and the next try, and sends it again', async () => {
    const { id } = await subscribe('503/log', { filter: { queues: ['hooks.log'] } });
    const page = await board.newPage(`/ui/webhooks?tab=deliveries&subscription=${id}`);
    await page.getByRole('heading', { name: 'No deliveries' }).waitFor();
    await page.getByRole('button', { name: /^Live updates: Live/ }).waitFor();
    await board.call('POST', 'jobs', { type: 'wait.for.worker', args: [], queue: 'hooks.log' });
    const delivery = row(page, 'job.enqueued');
    await delivery.getByRole('cell', { name: '503', exact: true }).waitFor();
    await delivery.getByText('pending').waitFor();
    await page.getByRole('link', { name: 'job.enqueued' }).click();
    const drawer = page.getByRole('dialog', { name: 'Delivery' });
    await drawer.getByText('the receiver says so').waitFor();
    await drawer.getByText('Next try').waitFor();
    const attempts = drawer.getByRole('table', { name: 'Attempts' }).locator('tbody tr');
    assert.equal(await attempts.count(), 1);
    await assertAccessible(page);
    await drawer.getByRole('button', { name: 'Replay' }).click();
    await page.getByText('Delivery repeated.').waitFor();
    await attempts.nth(1).waitFor();
    await page.keyboard.press('Escape');
    await page.getByLabel('Status').selectOption('delivered');
    await page.getByRole('heading', { name: 'No deliveries' }).waitFor();
    await page.goBack();
    await delivery.waitFor();
  });

  it('makes alert rules, shows when one fires, changes and deletes them', async () => {
    const page = await board.newPage('/ui/alerts');
    await page.getByRole('button', { name: 'New alert rule' }).click();
    const made = page.getByRole('dialog', { name: 'New alert rule' });
    await made.getByLabel('Name').fill('too deep');
    await made.getByLabel('Metric').selectOption('depth');
    await made.getByLabel('Fires above').fill('much');
    await made.getByLabel('Queue').fill('hooks.deep');
    await made.getByRole('button', { name: 'Create' }).click();
    await made.locator('.field.wrong', { hasText: 'Fires above' }).getByRole('alert').waitFor();
    await made.getByLabel('Fires above').fill('0');
    await made.getByRole('button', { name: 'Create' }).click();
    const rule = row(page, 'too deep');
    await rule.getByText('ok', { exact: true }).waitFor();
    await page.getByRole('button', { name: /^Live updates: Live/ }).waitFor();
    await board.call('POST', 'jobs', { type: 'wait.for.worker', args: [], queue: 'hooks.deep' });
    await rule.getByText('firing').waitFor();
    await page.getByRole('link', { name: 'too deep' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit the alert rule' });
    await edit.getByLabel('Duration').fill('5m');
    await edit.getByLabel('Active').uncheck();
    await edit.getByRole('button', { name: 'Save' }).click();
    await rule.getByText('for 5 min').waitFor();
    await rule.getByText('off', { exact: true }).waitFor();
    await rule.getByRole('button', { name: 'Delete too deep' }).click();
    await page.getByRole('button', { name: 'Delete the rule' }).click();
    await rule.waitFor({ state: 'detached' });
  });

  it('shows the name that the code declares, above the address', async () => {
    const { id } = await subscribe('200/named');
    const page = await board.newPage('/ui/webhooks', {
      prepare: (fresh) =>
        fresh.route(/webhooks\/subscriptions\?/, async (route) => {
          const response = await route.fetch();
          const list = await response.json();
          for (const item of list.items) if (item.id === id) item.declared = 'on-call';
          await route.fulfill({ response, json: list });
        }),
    });
    await row(page, '200/named').getByRole('link', { name: 'on-call' }).waitFor();
    await page.goto('/ui/webhooks?tab=deliveries');
    const option = (label) => page.getByLabel(label).getByRole('option', { name: 'on-call', exact: true });
    await option('Webhook').waitFor({ state: 'attached' });
    await page.goto('/ui/alerts?edit=new');
    await option('Notifies').waitFor({ state: 'attached' });
    await board.call('DELETE', `webhooks/subscriptions/${id}`);
  });

  it('is only looked at by a viewer', async () => {
    const { id } = await board.callClosed(KEYS.admin, 'POST', 'webhooks/subscriptions', {
      ...{ url: 'https://hooks.example.com/x', events: ['*'], active: false },
    });
    const page = await board.newPage(`/ui/webhooks?open=${id}`, { key: KEYS.viewer });
    await page.getByRole('dialog').getByText('https://hooks.example.com/[redacted]').waitFor();
    assert.equal(await page.getByRole('button', { name: /Test|Disable|Edit|secret|Delete/ }).count(), 0);
    await page.goto('/ui/alerts?edit=new');
    await page.getByRole('heading', { name: 'No alert rules yet' }).waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
  });

  it('is sound in both themes, wide or narrow', async () => {
    const { id } = await subscribe('200/axe');
    const rule = await board.call('POST', 'admin/alerts', { name: 'axe', metric: 'error_rate', above: 0.5 });
    const page = await board.newPage(`/ui/webhooks?open=${id}`);
    await page.getByRole('dialog').getByText('200/axe').waitFor();
    await assertSound(page);
    await page.goto('/ui/alerts');
    await row(page, 'axe').waitFor();
    await assertSound(page);
    await board.call('DELETE', `admin/alerts/${rule.id}`);
  });
});
