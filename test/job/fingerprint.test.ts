import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Failure,
  fingerprintOfFailure,
  isFingerprint,
  normaliseMessage,
} from '../../src/job/failures/fingerprint';

const failure = (change: Partial<Failure> = {}): Failure => ({
  ...{ type: 'mail.send', error_type: 'SmtpError', code: 'handler_error', message: 'no' },
  ...change,
});

describe('a normalised message', () => {
  it.each([
    ['user 42 not found', 'user <n> not found'],
    ['user42 is 1.5e3 of 10,000', 'user<n> is <n>e<n> of <n>'],
    ['offset -5, then +7 (a-5)', 'offset <n>, then <n> (a-<n>)'],
    ['order 01962222-bbbb-7ccc-8ddd-EEEEEEEEEEEE failed', 'order <uuid> failed'],
    ['at 0x7ffe, commit deadbeef01 and 3f2a99c0d', 'at <hex>, commit <hex> and <hex>'],
    ['the facade of a decade', 'the facade of a decade'],
    [`no "such thing", nor 'that one' nor \`this\``, 'no <text>, nor <text> nor <text>'],
    ["can't open what isn't there", "can't open what isn't there"],
    ['open /var/tmp/job-17/x.json: ENOENT', 'open <path>: ENOENT'],
    ['open C:\\Users\\ada\\x.txt failed', 'open <path> failed'],
    ['either/or', 'either/or'],
    ['GET https://api.example.com/v1/users/7?x=1 answered 503', 'GET <url> answered <n>'],
    ['since 2026-08-01T10:00:00.123Z, on 2026-08-02', 'since <time>, on <time>'],
    ['  two\n\nlines\t ', 'two lines'],
    ['数字 ４２ und ٣', '数字 <n> und <n>'],
  ])('of %j is %j', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected);
  });

  it('is short, whole in its characters, and found quickly, whatever the message', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 3000 }),
      fc.constantFrom('"', "'", '/a', '\\a', 'a1', '\ud83d\ude00', '0x', 'x://').map((part) => part.repeat(4000)),
    );
    fc.assert(
      fc.property(hostile, (message) => {
        const normal = normaliseMessage(message);
        expect(normal.length).toBeLessThanOrEqual(300);
        expect(normal.isWellFormed()).toBe(true);
        expect(normaliseMessage(message)).toBe(normal);
      }),
    );
  });
});

describe('a fingerprint', () => {
  const differing = fc.oneof(
    fc.nat().map(String),
    fc.uuid(),
    fc.webUrl(),
    fc.date({ min: new Date(0), max: new Date('9999-01-01'), noInvalidDate: true }).map((date) => date.toISOString()),
    fc.stringMatching(/^[a-z ]{0,20}$/).map((text) => `"${text}"`),
  );

  it('is the same whatever differs from job to job', () => {
    // One that holds a quote ends there: messages put addresses between quotes.
    const url = fc.webUrl().filter((text) => !text.includes("'"));
    const same = fc.oneof(
      fc.tuple(fc.nat(), fc.nat()).map(([a, b]) => [`${a}`, `${b}`]),
      fc.tuple(fc.uuid(), fc.uuid()),
      fc.tuple(url, url),
    );
    fc.assert(
      fc.property(same, ([a, b]) => {
        const of = (value = '') => fingerprintOfFailure(failure({ message: `could not load ${value} of them` }));
        expect(of(a)).toBe(of(b));
      }),
    );
  });

  it('differs by type of job, class, code and the words of the message', () => {
    const names = [
      failure(),
      failure({ type: 'mail.receive' }),
      failure({ error_type: 'TypeError' }),
      failure({ code: 'timeout' }),
      failure({ message: 'yes' }),
      failure({ type: 'a', error_type: 'bc' }),
      failure({ type: 'ab', error_type: 'c' }),
    ].map(fingerprintOfFailure);
    expect(new Set(names).size).toBe(names.length);
    expect(names.every(isFingerprint)).toBe(true);
  });

  it('is a name of 16 digits for any failure', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), differing, (text, value) => {
        const name = fingerprintOfFailure(failure({ type: text, error_type: value, message: text + value }));
        expect(isFingerprint(name)).toBe(true);
      }),
    );
  });
});
