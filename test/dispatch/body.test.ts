import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readBatchAnswer, readEntry } from '../../src/dispatch/answer';
import { EntryScanner, MAX_TEXT_BYTES, readText } from '../../src/dispatch/body';

const bytes = (text: string) => new TextEncoder().encode(text);

/** Cuts bytes into chunks of these sizes, over and over. */
function* chunksOf(whole: Uint8Array, sizes: number[]): Generator<Uint8Array> {
  for (let at = 0, n = 0; at < whole.length; n++) {
    const size = sizes[n % sizes.length] as number;
    yield whole.slice(at, at + size);
    at += size;
  }
}

function scan(text: string, sizes: number[]): { texts: string[]; sawResults: boolean } {
  const scanner = new EntryScanner();
  const texts = [...chunksOf(bytes(text), sizes)].flatMap((chunk) => scanner.push(chunk).map((entry) => entry.text));
  return { texts, sawResults: scanner.sawResults };
}

const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
const entry = fc.record(
  {
    delivery_id: fc.constantFrom('a', 'b', 'c'),
    status: fc.constantFrom('completed', 'failed', 'other'),
    result: fc.oneof(fc.jsonValue(), fc.constantFrom('"}]', '\\"{[', 'ü😀', { results: [{ delivery_id: 'b' }] })),
  },
  { requiredKeys: ['delivery_id', 'status'] },
);
const answer = fc.record(
  {
    before: fc.oneof(fc.jsonValue(), fc.constantFrom('results', ['results'], { results: [{}] })),
    results: fc.uniqueArray(entry, { selector: ({ delivery_id }) => delivery_id }),
    after: fc.jsonValue(),
  },
  { requiredKeys: ['results'] },
);

describe('the answer to a batch, read as it arrives', () => {
  it('says of each delivery what it says when read whole, however it is cut', () => {
    const ids = ['a', 'b', 'c'];
    fc.assert(
      fc.property(answer, fc.boolean(), sizes, (value, spaced, cuts) => {
        const text = JSON.stringify(value, null, spaced ? 2 : 0);
        const whole = readBatchAnswer({ status: 200, retryAfter: null, body: text }, ids, 0);
        const { texts, sawResults } = scan(text, cuts);
        expect(sawResults).toBe(true);
        const read = texts.flatMap((entryText) => readEntry({ text: entryText, isWhole: true }, 0) ?? []);
        expect(read).toHaveLength(value.results.length);
        for (const { id, outcome } of read) expect(outcome).toEqual(whole.get(id));
      }),
      { numRuns: 300 },
    );
  });

  it('gives the entries that came whole of one that breaks off', () => {
    const text = '{"results":[{"delivery_id":"a","status":"completed"},{"delivery_id":"b","sta';
    expect(scan(text, [7]).texts).toEqual(['{"delivery_id":"a","status":"completed"}']);
  });

  it.each(['', '[', '{"other":[{"delivery_id":"a"}]}', '{"a":{"results":[{"delivery_id":"a"}]}}', '"results"[{}]'])(
    'finds none in %j',
    (text) => {
      expect(scan(text, [3])).toEqual({ texts: [], sawResults: false });
    },
  );

  it('keeps the beginning of an entry that is too long to be held, and reads the next one', () => {
    const long = JSON.stringify({ delivery_id: 'a', status: 'completed', result: 'x'.repeat(MAX_TEXT_BYTES) });
    const text = `{"results":[${long},{"delivery_id":"b","status":"completed"}]}`;
    const scanner = new EntryScanner();
    const entries = [...chunksOf(bytes(text), [65_536])].flatMap((chunk) => scanner.push(chunk));
    expect(entries.map((each) => [each.isWhole, each.text.length < 2_000])).toEqual([
      [false, true],
      [true, true],
    ]);
    expect(entries.map((text) => readEntry(text, 0))).toMatchObject([
      { id: 'a', outcome: { kind: 'failed', error: { code: 'result_too_large', retryable: false } } },
      { id: 'b', outcome: { kind: 'completed' } },
    ]);
  });
});

it('an entry of a failure that is too long is a failure', () => {
  const text = '{"delivery_id":"a","status":"failed","error":{"message":"xxx';
  expect(readEntry({ text, isWhole: false }, 0)).toMatchObject({
    outcome: { kind: 'failed', error: { code: 'handler_error' } },
  });
});

describe('a body that does not end', () => {
  it('is read to the bound', async () => {
    let sent = 0;
    const endless = new ReadableStream({
      pull(stream) {
        sent++;
        stream.enqueue(bytes('x'.repeat(1000)));
      },
    });
    const arriving = new Response(endless.pipeThrough(new IdentityTransformStream()));
    const { text, isWhole } = await readText(arriving, 100_000);
    expect(isWhole).toBe(false);
    expect(text.length).toBeLessThan(170_000);
    expect(sent).toBeLessThan(200);
  });
});
