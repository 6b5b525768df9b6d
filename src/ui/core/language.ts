/**
 * The language of the browser. On some systems it is none, such as `en-US@posix`: whatever formats by it throws, and
 * the chart library does when it is loaded.
 */
export function mendLanguage(browser: Pick<Navigator, 'language'>): void {
  try {
    new Intl.NumberFormat(browser.language);
  } catch {
    const plain = browser.language.replace(/[@._].*$/, '');
    const [known = 'en'] = isLanguage(plain) ? [plain] : [];
    Object.defineProperty(browser, 'language', { value: known, configurable: true });
  }
}

function isLanguage(name: string): boolean {
  try {
    return Intl.NumberFormat.supportedLocalesOf(name).length > 0;
  } catch {
    return false;
  }
}
