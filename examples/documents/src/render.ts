/** Markdown to HTML that is safe to show, whoever wrote the document. */
import { Marked, type Token } from 'marked';
import type { MarkdownDocument } from './document';
import { Anchors, type Heading, headingsOf, parseMarkdown, plainText } from './markdown';

/** Characters of HTML kept in a job's result; a longer document is cut between two blocks. */
export const MAX_HTML_CHARS = 64 * 1024;

/** Result of `document.render`. */
export interface Rendering {
  /** Size of the whole HTML, also when less is returned. */
  html_bytes: number;
  headings: Heading[];
  html: string;
  /** True when blocks were left out at the end. */
  truncated: boolean;
}

/** Renders a document. Raw HTML in it is shown as text, and links that would run a script are shown without link. */
export function render({ markdown }: MarkdownDocument): Rendering {
  const tokens = parseMarkdown(markdown);
  const renderBlock = blockRenderer();
  let html = '';
  let bytes = 0;
  let truncated = false;
  for (const token of tokens) {
    const block = renderBlock(token);
    bytes += new TextEncoder().encode(block).length;
    truncated ||= html.length + block.length > MAX_HTML_CHARS;
    if (!truncated) html += block;
  }
  return { html_bytes: bytes, headings: headingsOf(tokens), html, truncated };
}

/** One renderer for each document: it numbers equal headings. */
function blockRenderer(): (token: Token) => string {
  const anchors = new Anchors();
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth }) {
        return `<h${depth} id="${escapeHtml(anchors.idFor(plainText(tokens)))}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      html({ text }) {
        return escapeHtml(text);
      },
      link({ href, tokens }) {
        return isSafeTarget(href) ? false : this.parser.parseInline(tokens);
      },
      image({ href, text }) {
        return isSafeTarget(href) ? false : escapeHtml(text);
      },
    },
  });
  return (token) => marked.parser([token]);
}

/**
 * Web and mail addresses, and any without a scheme. An `&` before the first slash may hide a scheme, because browsers
 * decode entities in attributes.
 */
function isSafeTarget(href: string): boolean {
  return /^(?:https?:\/\/|mailto:|[^:&]*(?:[/?#]|$))/i.test(href);
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
