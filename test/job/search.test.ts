import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { saysAll, searcherFor, wordsOf } from '../../src/job/search';

const job = (change: {
  args?: unknown[];
  meta?: object;
  tags?: string[];
  error?: string[];
  [other: string]: unknown;
}) => {
  const { args = [], meta = {}, tags = [], error = [], ...other } = change;
  return {
    id: '01a1f87a-0000-7000-8000-000000000000',
    type: 'mail.send',
    error,
    body: JSON.stringify({ args, meta, tags, ...other }),
  };
};
const finds = (text: string, searched: ReturnType<typeof job>) => searcherFor(wordsOf(text))(searched);

describe('a search', () => {
  it('consists of words and quoted phrases', () => {
    expect(wordsOf('  Ada  "Grace Hopper" x"y z')).toEqual(['ada', 'grace hopper', 'x', 'y z']);
    expect(wordsOf('" " ""')).toEqual([]);
    expect(wordsOf('a A a')).toEqual(['a']);
  });

  it.each<[string, Parameters<typeof job>[0], boolean]>([
    ['ada', { args: [{ name: 'Ada' }] }, true],
    ['ÉCLAIR', { args: ['ein Éclair, bitte'] }, true],
    ['éclair', { args: ['ÉCLAIR'] }, true],
    ['ada grace', { args: ['Ada'], meta: { by: 'Grace' } }, true],
    ['ada grace', { args: ['Ada'] }, false],
    ['"ada grace"', { args: ['ada', 'grace'] }, false],
    ['"say \'hi\'"', { args: ["say 'hi'"] }, true],
    ['c:\\temp', { args: ['C:\\Temp\\x'] }, true],
    ['vip', { tags: ['VIP'] }, true],
    ['MAIL.', {}, true],
    ['01a1f87a-00', {}, true],
    ['0000-7000', {}, false],
    ['econnrefused', { error: ['connect ECONNREFUSED', 'Error'] }, true],
    // Not what the job carries, but how it is told.
    ['tags', {}, false],
    ['timeout', { timeout_ms: 5 }, false],
    ['<script>', { args: ['<script>alert(1)</script>'] }, true],
    ['__proto__', { args: [JSON.parse('{"__proto__":1}')] }, true],
  ])('%j', (text, change, found) => {
    expect(finds(text, job(change))).toBe(found);
  });

  it('finds every part of any text that a job carries', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.nat(), fc.nat(), (text, from, to) => {
        const [start, end] = [from % text.length, to % (text.length + 1)].sort((a, b) => a - b);
        const part = text.slice(start, end).replaceAll('"', '').trim();
        const isWhole = text.includes(part) && part.isWellFormed() && text.isWellFormed();
        // A text whose case changes its length is compared as it is written there.
        const isPlain = text.toLowerCase().includes(part.toLowerCase());
        fc.pre(isWhole && isPlain && part !== '');
        expect(finds(`"${part}"`, job({ args: [text] }))).toBe(true);
      }),
    );
  });

  it('in errors alone asks for all words in their texts', () => {
    expect(saysAll(['no', 'smtp'])(['No.', 'SmtpError'])).toBe(true);
    expect(saysAll(['no', 'x'])(['No.', 'SmtpError'])).toBe(false);
  });
});
