import { describe, expect, it } from 'vitest';
import { digest } from '../../examples/documents/src/digest';
import { parseMarkdown } from '../../examples/documents/src/markdown';
import { paragraphsOf } from '../../examples/documents/src/paragraphs';
import { countProse, countSyllables, fleschReadingEase, readingMinutes } from '../../examples/documents/src/prose';

describe('the prose of a document', () => {
  it('is its headings, paragraphs, list items, quotations and cells, without code and marks', () => {
    const markdown = [
      '# Title',
      'A *marked* [link](x.md) and `code`.',
      '- one\n- two\n  - three',
      '> quoted',
      '```js\nnot(prose);\n```',
      '| head |\n|---|\n| cell |',
      '<div>html</div>',
    ].join('\n\n');
    expect(paragraphsOf(parseMarkdown(markdown))).toEqual([
      'Title',
      'A marked link and code.',
      'one',
      'two',
      'three',
      'quoted',
      'head',
      'cell',
    ]);
  });
});

describe('counting', () => {
  it('finds words and sentences, which end with their paragraph at the latest', () => {
    expect(countProse(['Title', "It works. Doesn't it? Yes", '...'])).toMatchObject({ words: 6, sentences: 4 });
  });

  it.each([
    ['queue', 1],
    ['time', 1],
    ['table', 2],
    ['worker', 2],
    ['waited', 2],
    ['stopped', 1],
    ['durable', 3],
    ['42', 1],
  ])('hears the syllables of %s', (word, syllables) => {
    expect(countSyllables(word)).toBe(syllables);
  });

  it('rates short words in short sentences easier than long ones', () => {
    const easy = fleschReadingEase(countProse(['The cat sat on the mat. It was fat.'])) ?? 0;
    const hard =
      fleschReadingEase(countProse(['Considerable organisational complexity necessitates documentation.'])) ?? 0;
    expect(easy).toBeGreaterThan(90);
    expect(hard).toBeLessThan(0);
  });

  it('follows the formula of Flesch', () => {
    // 206.835 − 1.015 · 10 − 84.6 · 1.5
    expect(fleschReadingEase({ words: 100, sentences: 10, syllables: 150 })).toBe(69.8);
    expect(fleschReadingEase({ words: 0, sentences: 0, syllables: 0 })).toBeNull();
  });

  it('takes a minute for 238 words', () => {
    expect(readingMinutes(238)).toBe(1);
  });
});

describe('a digest', () => {
  it('holds the fingerprint of the bytes and the figures of the text', async () => {
    expect(await digest({ path: 'a.md', markdown: 'abc' })).toEqual({
      // The example of FIPS 180-4.
      sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
      bytes: 3,
      words: 1,
      sentences: 1,
      headings: 0,
      reading_minutes: 0,
      flesch_reading_ease: 121.2,
    });
  });

  it('counts bytes, not characters', async () => {
    expect(await digest({ path: 'a.md', markdown: '# Größe' })).toMatchObject({ bytes: 9, headings: 1 });
  });
});
