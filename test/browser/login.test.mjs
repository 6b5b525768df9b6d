// Logins at an identity provider, from the dashboard.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { assertSound, dashboard, KEYS } from './support/index.mjs';

describe('the login of a person', { timeout: 900_000 }, () => {
  const board = dashboard();
  before(async () => {
    for (const queue of ['a-mail', 'b-mail']) {
      await board.callPeople(KEYS.admin, 'POST', 'jobs', { type: 'wait.for.worker', args: [{ n: 1 }], queue });
    }
  });

  const signIn = (page) => page.getByRole('link', { name: 'Sign in with your account' });

  it('leads to the provider and back to the page, which shows the queues of the person alone', async () => {
    // Sockets of events are refused to callers with bounds.
    const expect = /^WebSocket connection .* code: 403$/;
    const page = await board.newPage('/ui/jobs?sort=created_at', { people: true, expect });
    await signIn(page).waitFor();
    await page.getByLabel('API key').waitFor();
    await assertSound(page);
    await signIn(page).click();
    await page.getByRole('link', { name: 'ada' }).click();
    await page.getByRole('heading', { level: 1, name: 'Jobs', exact: true }).waitFor();
    assert.match(page.url(), /\/ui\/jobs\?sort=created_at$/);
    await page.getByText('ada@acme.example').waitFor();
    await page.getByRole('link', { name: 'a-mail', exact: true }).first().waitFor();
    assert.equal(await page.getByText('b-mail').count(), 0);
    // The scripts of the page cannot read the session.
    assert.equal(await page.evaluate(() => document.cookie), '');
    const seen = await page.evaluate(() => fetch('/ojs/v1/admin/session').then((answer) => answer.json()));
    assert.deepEqual(
      { ...seen, scopes: undefined },
      {
        ...{ authenticated: true, open: false, name: 'ada@acme.example', role: 'operator', scopes: undefined },
        ...{ via: 'login', subject: 'ada', bounds: { queues: ['a-*'] }, redacts: false },
      },
    );
    await page.reload();
    await page.getByText('ada@acme.example').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signIn(page).waitFor();
    await page.reload();
    await signIn(page).waitFor();
  });

  it('is refused to a person without a role, and to a browser that did not begin it', async () => {
    const page = await board.newPage('/ui/jobs', { people: true });
    await signIn(page).click();
    await page.getByRole('link', { name: 'otto' }).click();
    await page.getByText('no_role').waitFor();
    await page.goto('/ui/jobs');
    await signIn(page).click();
    const stolen = await page.getByRole('link', { name: 'ada' }).getAttribute('href');
    const other = await board.newPage('/ui/jobs', { people: true });
    await other.goto(stolen);
    await other.getByText('was not begun by this browser').waitFor();
    await other.goto('/ui/jobs');
    await signIn(other).waitFor();
  });
});
