import { describe, expect, it } from 'vitest';
import { anchorsOf, headingsOf, parseMarkdown } from '../../examples/documents/src/markdown';

describe('anchors', () => {
  it.each([
    ['# Getting started', 'getting-started'],
    ['## What is *it*, and `why`?', 'what-is-it-and-why'],
    ['# `snake_case` & dashes-stay', 'snake_case--dashes-stay'],
    ['# [A link](there.md) in a heading', 'a-link-in-a-heading'],
    ['# Größe über alles', 'größe-über-alles'],
    ['Underlined\n===', 'underlined'],
  ])('of %s are those GitHub makes', (markdown, anchor) => {
    expect(anchorsOf(markdown)).toEqual([anchor]);
  });

  it('of equal headings are numbered, also when a number is taken already', () => {
    expect(anchorsOf('# Use\n# Use\n# Use 1\n# Use')).toEqual(['use', 'use-1', 'use-1-1', 'use-2']);
  });

  it('are not made from headings in code', () => {
    expect(anchorsOf('```sh\n# a comment\n```\n\n# Real')).toEqual(['real']);
  });
});

describe('headings', () => {
  it('are found in order with their level and text, also in quotations', () => {
    expect(headingsOf(parseMarkdown('# One\n\ntext\n\n> ### Two **bold**\n\n## Three'))).toEqual([
      { level: 1, text: 'One', id: 'one' },
      { level: 3, text: 'Two bold', id: 'two-bold' },
      { level: 2, text: 'Three', id: 'three' },
    ]);
  });
});
