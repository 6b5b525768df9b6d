/** The language by which a browser formats, also where its system names none. */
import { expect, it } from 'vitest';
import { mendLanguage } from '../../../src/ui/core/language';

it.each([
  ['en-US@posix', 'en-US'],
  ['de-DE', 'de-DE'],
  ['C.UTF-8', 'en'],
  ['C', 'en'],
  ['', 'en'],
  ['fr@x@y', 'fr'],
])('%j is %s', (given, known) => {
  const browser = Object.create({
    get language() {
      return given;
    },
  }) as Navigator;
  mendLanguage(browser);
  expect(browser.language).toBe(known);
  expect(new Intl.NumberFormat(browser.language).format(1)).toBe('1');
});
