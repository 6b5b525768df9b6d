/** The prose of a document: what a reader reads, without code and markup. */
import type { Token, Tokens } from 'marked';
import { plainText } from './markdown';

/** The text of each heading, paragraph, list item and table cell, in order. */
export function paragraphsOf(tokens: readonly Token[]): string[] {
  return tokens.flatMap(textsIn).filter((text) => text.trim() !== '');
}

function textsIn(token: Token): string[] {
  if (isList(token)) return token.items.flatMap((item) => paragraphsOf(item.tokens));
  if (isTable(token)) return [token.header, ...token.rows].flat().map((cell) => plainText(cell.tokens));
  if (token.type === 'blockquote') return paragraphsOf(token.tokens ?? []);
  if (token.type === 'heading' || token.type === 'paragraph' || token.type === 'text') {
    return [plainText('tokens' in token && token.tokens ? token.tokens : [token])];
  }
  return [];
}

function isList(token: Token): token is Tokens.List {
  return token.type === 'list';
}

function isTable(token: Token): token is Tokens.Table {
  return token.type === 'table';
}
