// Texts sound like the field: those that users meet (of the program, the dashboard, every message of the server), and the
// comments of the code.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from '@babel/parser';
import { root } from './dev.mjs';
import { quaintIn, stiffIn } from './plain-words.mjs';
import { documents } from './snippets.mjs';

/** SQL has words of its own. */
const SQL = /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|DROP|ALTER|CASE|EXISTS)\b|\b(?:WHERE|ORDER BY|AND) /;

/** Pages that are in plain words throughout. */
const PLAIN = /^docs\/(?:reference|start)\//;

const plugins = (path) => ['typescript', 'decorators', ...(path.endsWith('x') ? ['jsx'] : [])];

/** The texts in a module: strings, templates, and what stands between the tags of a page. */
function textsOf(path) {
  const texts = [];
  const visit = (node) => {
    if (Array.isArray(node)) for (const child of node) visit(child);
    if (typeof node?.type !== 'string') return;
    if (['ImportDeclaration', 'ExportAllDeclaration', 'TSLiteralType'].includes(node.type)) return;
    if (node.type === 'StringLiteral' || node.type === 'JSXText') texts.push(node.value);
    if (node.type === 'TemplateLiteral') texts.push(node.quasis.map(({ value }) => value.cooked).join('…'));
    for (const [name, child] of Object.entries(node)) if (!name.endsWith('omments')) visit(child);
  };
  visit(parse(readFileSync(join(root, path), 'utf8'), { sourceType: 'module', plugins: plugins(path) }).program);
  // A single word is a name.
  return texts.filter((text) => /\S\s+\S/.test(text) && !SQL.test(text));
}

/** The longest line of a comment; the formatter holds code to the same. */
const MAX_LINE = 120;

/** The comments of a module, each as one text: lines that follow each other are one comment. */
function commentsOf(text, path) {
  const found = [];
  let end;
  for (const { type, value, loc } of parse(text, { sourceType: 'module', plugins: plugins(path) }).comments) {
    const lines = value.split('\n').map((line) => line.replace(/^\s*\*+ ?/, ''));
    const goesWith = type === 'CommentLine' && end?.line === loc.start.line - 1 && end.column === loc.start.column;
    if (goesWith) found.push(`${found.pop()} ${lines.join(' ')}`);
    else found.push(lines.join(' '));
    end = type === 'CommentLine' ? { line: loc.end.line, column: loc.start.column } : undefined;
  }
  return found;
}

describe('the words of', () => {
  const modules = globSync('src/**/*.{ts,tsx}', { cwd: root }).filter((path) => !path.endsWith('.d.ts'));
  const rooms = Map.groupBy(modules, (path) => path.split('/')[1]);
  for (const [room, paths] of [...rooms].sort()) {
    it(`src/${room} are plain`, () => {
      const found = paths.flatMap((path) =>
        textsOf(path)
          .flatMap(quaintIn)
          .map((quaint) => `${path}: ${quaint}`),
      );
      assert.deepEqual(found, []);
    });

    it(`the comments of src/${room} are plain, in short lines`, () => {
      const found = paths.flatMap((path) => {
        const text = readFileSync(join(root, path), 'utf8');
        const long = text.split('\n').filter((line) => line.length > MAX_LINE && /^\s*(?:\*|\/\/|\/\*)/.test(line));
        return [
          ...commentsOf(text, path).flatMap(quaintIn),
          ...long.map((line) => `${line.length} characters, more than ${MAX_LINE}: ${line}`),
        ].map((wrong) => `${path}: ${wrong}`);
      });
      assert.deepEqual(found, []);
    });
  }

  for (const path of documents()) {
    it(`${path} are plain`, () => {
      // Paths of files are what they are.
      const lines = readFileSync(join(root, path), 'utf8')
        .replace(/`[^`\n]*`/g, 'code')
        .split(/\n{2,}/);
      assert.deepEqual(lines.flatMap(PLAIN.test(path) ? stiffIn : quaintIn), []);
    });
  }

  it('a quaint text are named with what to say instead', () => {
    assert.deepEqual(quaintIn('The rest is to be\n done'), ['"is to be" in "The rest is to be done": write must be']);
    assert.deepEqual(quaintIn('A dead letter is kept; the queue is no longer paused.'), []);
  });
});
