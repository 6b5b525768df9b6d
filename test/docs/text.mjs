/** What a document shows as code: the blocks, and the spans in its running text. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lexer, walkTokens } from 'marked';
import { root } from './dev.mjs';
import { documents } from './snippets.mjs';

/** @type {Map<string, { spans: string[], blocks: { lang: string, text: string, answer?: string }[] }>} */
const known = new Map();

/**
 * The code of a document. The text of a span that goes over two lines is one line. The `answer` of a block of commands is
 * the block of output that follows it directly.
 */
export function codeOf(path) {
  let found = known.get(path);
  if (!found) {
    found = { spans: [], blocks: [] };
    let last;
    walkTokens(lexer(readFileSync(join(root, path), 'utf8')), (token) => {
      if (token.type === 'codespan') found.spans.push(token.text.replace(/\s+/g, ' '));
      const block = token.type === 'code' ? { lang: token.lang ?? '', text: token.text } : undefined;
      if (block) found.blocks.push(block);
      if (['json', 'text'].includes(block?.lang) && last?.lang === 'sh') last.answer = block.text;
      if (token.type !== 'space') last = block;
    });
    known.set(path, found);
  }
  return found;
}

/** All that documents show as code, each with the document it is in. */
export function everywhere(pick) {
  return documents().flatMap((path) => pick(codeOf(path)).map((text) => ({ path, text })));
}

/** Every command that is shown, in a block of `sh` or at a prompt, as one line. */
export function commandsIn({ blocks }) {
  return blocks.flatMap(commandsOf);
}

/** The commands of a block, each as one line, with the lines that an open quote takes in. */
export function commandsOf({ lang, text }) {
  if (!['console', 'sh'].includes(lang)) return [];
  const commands = [];
  let open;
  for (const line of text.replace(/\s*\\\n\s*/g, ' ').split('\n')) {
    if (open !== undefined) open += ` ${line.trim()}`;
    else if (lang === 'sh') open = line;
    else if (line.startsWith('$ ')) open = line.slice(2);
    else continue;
    // An apostrophe in a comment opens nothing.
    const quotes = open.replace(/(^|\s)#\s.*/, '').match(/'/g) ?? [];
    if (quotes.length % 2 === 0) {
      commands.push(open);
      open = undefined;
    }
  }
  return commands;
}

/** A part of a page: from its heading to the next one of the same rank or above. */
export function section(path, heading) {
  const lines = readFileSync(join(root, path), 'utf8').split('\n');
  const start = lines.indexOf(heading);
  if (start < 0) throw new Error(`${path} has no "${heading}"`);
  const rank = heading.indexOf(' ');
  const length = lines.slice(start + 1).findIndex((line) => /^#+ /.test(line) && line.indexOf(' ') <= rank);
  return lines.slice(start, length < 0 ? undefined : start + 1 + length).join('\n');
}
