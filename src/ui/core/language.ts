/** On some systems the browser's language is invalid (`en-US@posix`): formatters and the chart library would throw. */
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
