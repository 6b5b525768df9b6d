/** What tests of pages have in common. */
import { assertAccessible, assertNoSideways } from './index.mjs';

/** Time for an update that a page is notified of, ms: less than until it would look again by itself, and much on a busy machine. */
export const SOON_MS = 25_000;

/** Waits until the page hears of events. */
export const live = (page) => page.getByRole('button', { name: /^Live updates: Live/ }).waitFor();

/** Answers the question that a page asks before it acts. */
export async function answer(page, action, typed) {
  const dialog = page.getByRole('dialog');
  if (typed !== undefined) await dialog.getByRole('textbox').fill(typed);
  await dialog.getByRole('button', { name: action }).click();
  await dialog.waitFor({ state: 'detached' });
}

/** Nothing that axe finds, wide in the light theme and as on a phone in the dark one, and nothing wider than a phone. */
export async function assertFitForAll(page) {
  await assertAccessible(page);
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.setViewportSize({ width: 360, height: 740 });
  await assertNoSideways(page);
  await assertAccessible(page);
}
