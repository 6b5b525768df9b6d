import { describe, expect, it } from 'vitest';
import type { LinkCheck } from '../../examples/documents/src/document';
import { linksOf, problemOf, targetOf } from '../../examples/documents/src/links';

describe('the links of a document', () => {
  it('are its links and images in order, each once, also those by reference', () => {
    const markdown = '[a](a.md) ![b](b.png) [again](a.md) [c][ref] <https://d.example/>\n\n[ref]: c.md';
    expect(linksOf(markdown)).toEqual(['a.md', 'b.png', 'c.md', 'https://d.example/']);
  });

  it('are not what only looks like one in code', () => {
    expect(linksOf('`[a](a.md)`\n\n```\n[b](b.md)\n```')).toEqual([]);
  });
});

describe('a link', () => {
  it.each([
    ['#top', 'docs/guide.md', 'top'],
    ['other.md', 'docs/other.md', undefined],
    ['./other.md#part', 'docs/other.md', 'part'],
    ['../README.md', 'README.md', undefined],
    ['/src/a.ts', 'src/a.ts', undefined],
    ['sub/../other.md?plain=1#part', 'docs/other.md', 'part'],
    ['with%20space.md#%C3%BC', 'docs/with space.md', 'ü'],
    ['100%.md', 'docs/100%.md', undefined],
    ['.', 'docs', undefined],
    ['../..', undefined, undefined],
    ['other.md#', 'docs/other.md', undefined],
  ])('%s leads to a file', (href, path, anchor) => {
    expect(targetOf(href, 'docs/guide.md')).toEqual({ kind: 'file', path, anchor });
  });

  it.each(['https://example.com/a', 'HTTP://example.com'])('%s leads to a server', (href) => {
    expect(targetOf(href, 'a.md')).toEqual({ kind: 'url', url: new URL(href) });
  });

  it.each(['mailto:a@example.com', '//example.com/a', 'http://', 'data:text/plain,x'])('%s leads elsewhere', (href) => {
    expect(targetOf(href, 'a.md')).toEqual({ kind: 'other' });
  });
});

describe('a link into the project', () => {
  const check: LinkCheck = {
    path: 'docs/guide.md',
    markdown: '# Here',
    files: { 'docs/guide.md': ['stale'], 'docs/other.md': ['there'], 'src/a.ts': null },
  };
  const problem = (href: string): string | undefined => {
    const target = targetOf(href, check.path);
    if (target.kind !== 'file') throw new Error(`${href} is no file`);
    return problemOf(target, check);
  };

  it.each(['#here', 'other.md', 'other.md#there', '../src/a.ts#L10', '../src', '../src/', '..', '/'])(
    'to %s is fine',
    (href) => {
      expect(problem(href)).toBeUndefined();
    },
  );

  it.each([
    ['#there', 'docs/guide.md has no heading #there'],
    ['#stale', 'docs/guide.md has no heading #stale'],
    ['other.md#here', 'docs/other.md has no heading #here'],
    ['missing.md', 'there is no file docs/missing.md'],
    ['../src/a', 'there is no file src/a'],
    ['constructor', 'there is no file docs/constructor'],
    ['../constructor', 'there is no file constructor'],
    ['../../x.md', 'leads out of the project'],
  ])('to %s is broken', (href, expected) => {
    expect(problem(href)).toBe(expected);
  });
});
