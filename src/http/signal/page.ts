/** The page of a signal URL: it has no script, and asks with the buttons of a form. */

/** What it says: a text, or else a question. */
export interface SignalPage {
  title: string;
  text?: string;
  choices?: readonly string[];
}

/** Colours are the reader's own, light or dark. */
const STYLE = `:root{color-scheme:light dark;font:1.125rem/1.5 system-ui,sans-serif}
body{margin:0;min-height:100vh;display:grid;place-items:center}
main{box-sizing:border-box;width:100%;max-width:28rem;padding:1.5rem}
h1{font-size:1.5rem;line-height:1.3;overflow-wrap:anywhere}
button{display:block;width:100%;min-height:3rem;margin:.75rem 0;padding:.5rem 1rem;font:inherit;overflow-wrap:anywhere;cursor:pointer}`;

/** @returns the page, and the policy that keeps everything else out of it */
export function pageOf({ title, text, choices }: SignalPage): { html: string; policy: string } {
  const nonce = crypto.randomUUID();
  const heading = escaped(title);
  const buttons = choices?.map(
    (choice) => `<button name="choice" value="${escaped(choice)}">${escaped(choice)}</button>`,
  );
  const form = `<form method="post">${buttons?.join('') ?? '<button>Confirm</button>'}</form>`;
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${heading}</title>
<style nonce="${nonce}">${STYLE}</style>
<main><h1>${heading}</h1>${text === undefined ? form : `<p>${escaped(text)}</p>`}</main>
</html>
`;
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;
  return { html, policy };
}

const escaped = (text: string) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
