/** Styles that are loaded with the page that needs them. */

const adopted = new Set<string>();

/** Adds a style sheet to the document, once. Called where the module that needs it is loaded. */
export function adopt(text: string): void {
  if (adopted.has(text)) return;
  adopted.add(text);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  document.adoptedStyleSheets.push(sheet);
}
