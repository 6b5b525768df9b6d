// The documents can be read in a terminal and reviewed line by line: short lines, narrow tables, four sections.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { lexer } from 'marked';
import { root } from './dev.mjs';
import { documents } from './snippets.mjs';
import { codeOf } from './text.mjs';

/** Characters of a line outside of code blocks, at most. */
const MAX_LINE = 100;

/** Columns of a table, at most. More is a list. */
const MAX_COLUMNS = 3;

/** Words of a sentence, at most. A colon and a semicolon end one, too. */
const MAX_WORDS = 25;

const SECTIONS = ['guides', 'operate', 'reference', 'start'];

/** One file for coding agents, which the package has, too. */
const SKILL = 'skill';

/** The top-level blocks of a document that are not code. */
function blocksOf(path) {
  return lexer(readFileSync(join(root, path), 'utf8')).filter(({ type }) => type !== 'code');
}

/** A link to a page elsewhere, alone on its line: it cannot be broken. */
const isAddress = (line) => /^\S*https?:\/\/\S+$/.test(line.trim());

/** The sentences of the running text. What stands in code counts as a word. */
function sentencesOf(path) {
  const paragraphs = [];
  const visit = (tokens) => {
    for (const { type, text, items } of tokens) {
      if (type === 'list') visit(items.flatMap((item) => item.tokens));
      else if (type === 'paragraph' || type === 'text') paragraphs.push(text);
    }
  };
  visit(blocksOf(path));
  return paragraphs.flatMap((text) =>
    text
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/`[^`]*`/g, 'code')
      .split(/(?<=[.?!:;→])\s+/),
  );
}

const wordsIn = (sentence) => sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

describe('the documents', () => {
  for (const path of documents()) {
    it(`have lines of at most ${MAX_LINE} characters: ${path}`, () => {
      const long = blocksOf(path)
        .flatMap(({ raw }) => raw.split('\n'))
        .filter((line) => [...line].length > MAX_LINE && !isAddress(line));
      assert.deepEqual(long, []);
    });

    it(`have sentences of at most ${MAX_WORDS} words: ${path}`, () => {
      const sentences = sentencesOf(path);
      assert.deepEqual(
        sentences.filter((sentence) => wordsIn(sentence) > MAX_WORDS),
        [],
      );
    });

    it(`have tables of at most ${MAX_COLUMNS} columns: ${path}`, () => {
      const wide = blocksOf(path).filter(({ type, header }) => type === 'table' && header.length > MAX_COLUMNS);
      assert.deepEqual(
        wide.map(({ raw }) => raw.split('\n')[0]),
        [],
      );
    });
  }

  it('have no block of code that is empty', () => {
    const empty = documents().filter((path) => codeOf(path).blocks.some(({ text }) => text.trim() === ''));
    assert.deepEqual(empty, []);
  });

  it('lie in four sections, and the skill beside them', () => {
    const entries = readdirSync(join(root, 'docs'), { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'));
    assert.deepEqual(folders.map(({ name }) => name).sort(), [...SECTIONS, SKILL].sort());
    assert.deepEqual(readdirSync(join(root, 'docs', SKILL)), ['SKILL.md']);
  });
});
