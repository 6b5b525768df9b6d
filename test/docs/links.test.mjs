// What the documents point at exists: relative links with their anchors, and the project's own paths in the text.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, it } from 'node:test';
import { lexer, walkTokens } from 'marked';
import { root } from './dev.mjs';
import { documents } from './snippets.mjs';

/** Configurations that readers make for themselves; git ignores them. */
const MADE_BY_READERS = new Set(['wrangler.local.toml', 'wrangler.staging.toml']);

/** A path of the project as it stands in running text, perhaps with a line number behind it. */
const PATH = /^(?:src|docs|test|examples|bench|migrations|\.ci)\/[\w./-]*|^[\w.-]+\.(?:md|toml|json|ts|mjs)$/;

/** Pages that list others. Every document is linked from one of them. */
const INDEXES = ['README.md', 'docs/README.md'];

const read = (path) => readFileSync(join(root, path), 'utf8');

/** The tokens of a document, nested ones included. */
function tokensOf(path) {
  const tokens = [];
  walkTokens(lexer(read(path)), (token) => tokens.push(token));
  return tokens;
}

/** The relative links of a document: as written, the file each leads to, and its anchor. */
function linksOf(path) {
  return tokensOf(path)
    .filter(({ type, href }) => (type === 'link' || type === 'image') && !/^[a-z][a-z0-9+.-]*:/i.test(href))
    .map(({ href }) => {
      const [file, anchor] = href.split('#');
      return { href, anchor, target: file === '' ? path : normalize(join(dirname(path), decodeURIComponent(file))) };
    });
}

/** The anchor GitHub gives a heading. */
function anchorOf(heading) {
  const text = heading.replace(/`|\*|\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
  return text.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');
}

function anchorsIn(path) {
  return tokensOf(path)
    .filter((token) => token.type === 'heading')
    .map((token) => anchorOf(token.text));
}

function leadsNowhere({ target, anchor }) {
  if (target.startsWith('..') || !existsSync(join(root, target))) return true;
  return anchor !== undefined && target.endsWith('.md') && !anchorsIn(target).includes(anchor);
}

describe('the documents', () => {
  for (const path of documents()) {
    it(`point only at what exists: ${path}`, () => {
      const broken = linksOf(path)
        .filter(leadsNowhere)
        .map(({ href }) => href);
      assert.deepEqual(broken, [], `broken links in ${path}`);
    });

    it(`name only files that exist: ${path}`, () => {
      const missing = tokensOf(path)
        .filter((token) => token.type === 'codespan')
        .flatMap((token) => PATH.exec(token.text)?.[0] ?? [])
        .filter((name) => !MADE_BY_READERS.has(name))
        .filter((name) => ![root, join(root, dirname(path))].some((base) => existsSync(join(base, name))));
      assert.deepEqual(missing, [], `missing files named in ${path}`);
    });
  }

  it('are each linked from an index, which the README links', () => {
    const listed = new Set(INDEXES.flatMap((index) => linksOf(index).map(({ target }) => target)));
    assert.deepEqual(
      documents().filter((path) => path !== 'README.md' && !listed.has(path)),
      [],
    );
  });
});
