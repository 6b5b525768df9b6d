// What the documents point at exists: relative links with their anchors, and the project's own paths in the text.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, it } from 'node:test';
import { lexer, walkTokens } from 'marked';
import { root } from './dev.mjs';

const documents = ['README.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)].filter((path) =>
  path.endsWith('.md'),
);

/** A path of the project as it stands in running text, perhaps with a line number behind it. */
const PATH = /^(?:src|docs|test|examples|bench|migrations|\.ci)\/[\w./-]*|^[\w.-]+\.(?:md|toml|json|ts|mjs)$/;

const read = (path) => readFileSync(join(root, path), 'utf8');

/** The tokens of a document, nested ones included. */
function tokensOf(path) {
  const tokens = [];
  walkTokens(lexer(read(path)), (token) => tokens.push(token));
  return tokens;
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

describe('the documents', () => {
  for (const path of documents) {
    it(`point only at what exists: ${path}`, () => {
      const broken = [];
      for (const token of tokensOf(path)) {
        if (token.type !== 'link' && token.type !== 'image') continue;
        if (/^[a-z][a-z0-9+.-]*:/i.test(token.href)) continue;
        const [file, anchor] = token.href.split('#');
        const target = file === '' ? path : normalize(join(dirname(path), decodeURIComponent(file)));
        if (target.startsWith('..') || !existsSync(join(root, target))) broken.push(token.href);
        else if (anchor && target.endsWith('.md') && !anchorsIn(target).includes(anchor)) broken.push(token.href);
      }
      assert.deepEqual(broken, [], `broken links in ${path}`);
    });

    it(`name only files that exist: ${path}`, () => {
      const missing = tokensOf(path)
        .filter((token) => token.type === 'codespan')
        .flatMap((token) => PATH.exec(token.text)?.[0] ?? [])
        .filter((name) => ![root, join(root, dirname(path))].some((base) => existsSync(join(base, name))));
      assert.deepEqual(missing, [], `missing files named in ${path}`);
    });
  }

  it('are all reachable from the README', () => {
    const linked = tokensOf('README.md')
      .filter((token) => token.type === 'link')
      .map((token) => relative('.', token.href.split('#')[0]));
    const unlinked = documents.filter((path) => path !== 'README.md' && !linked.includes(path));
    assert.deepEqual(unlinked, []);
  });
});
