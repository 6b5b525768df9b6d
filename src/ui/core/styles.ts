/** Adds a style sheet to the document. The build calls it for each one that a module imports. */
export function adopt(text: string): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets.push(sheet);
}
