/** Reading Markdown: its text, its headings and their anchors, over the tokens of `marked`. */
import { Marked, type Token, type Tokens } from 'marked';

/** A heading with the id that links to it use. */
export interface Heading {
  /** 1 … 6. */
  level: number;
  text: string;
  id: string;
}

const marked = new Marked({ gfm: true });

/** The block tokens of a document. Any text is Markdown, so this never fails. */
export function parseMarkdown(markdown: string): Token[] {
  return marked.lexer(markdown);
}

/** Calls `visit` with every token, outer before inner, in the order of the document. */
export function walk(tokens: Token[], visit: (token: Token) => void): void {
  marked.walkTokens(tokens, visit);
}

/** The text of inline tokens as a reader sees it: without marks, with the alternative text of images. */
export function plainText(tokens: readonly Token[]): string {
  return tokens.map(textOf).join('');
}

function textOf(token: Token): string {
  if (token.type === 'html') return '';
  if (token.type === 'br') return ' ';
  const inner = childrenOf(token);
  if (inner) return plainText(inner);
  return 'text' in token && typeof token.text === 'string' ? token.text : '';
}

function childrenOf(token: Token): Token[] | undefined {
  return 'tokens' in token ? token.tokens : undefined;
}

/** The headings of a document in order, also those in quotations and lists. */
export function headingsOf(tokens: Token[]): Heading[] {
  const anchors = new Anchors();
  const headings: Heading[] = [];
  walk(tokens, (token) => {
    if (!isHeading(token)) return;
    const text = plainText(token.tokens);
    headings.push({ level: token.depth, text, id: anchors.idFor(text) });
  });
  return headings;
}

function isHeading(token: Token): token is Tokens.Heading {
  return token.type === 'heading';
}

/** The ids that links into this Markdown may name after `#`. */
export function anchorsOf(markdown: string): string[] {
  return headingsOf(parseMarkdown(markdown)).map(({ id }) => id);
}

/**
 * Ids of headings as GitHub makes them: lower case, spaces to hyphens, punctuation dropped, and a number for repeated
 * headings.
 */
export class Anchors {
  readonly #taken = new Map<string, number>();

  idFor(heading: string): string {
    const base = heading
      .trim()
      .toLowerCase()
      .replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
      .replaceAll(' ', '-');
    let id = base;
    for (let count = this.#taken.get(base) ?? 0; this.#taken.has(id); ) {
      count++;
      id = `${base}-${count}`;
      this.#taken.set(base, count);
    }
    this.#taken.set(id, 0);
    return id;
  }
}
