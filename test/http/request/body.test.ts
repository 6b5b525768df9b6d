/** Large bodies become text part by part as they arrive: the parts end anywhere, also inside of a character. */

import { exports } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { type Json, server } from '../../support/server';

server.emptyBeforeEach();

const encoder = new TextEncoder();

/** Sends bytes in pieces of this size, without saying how many there are. */
async function enqueue(bytes: Uint8Array, piece: number): Promise<{ status: number; body: Json }> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const request = new Request('http://localhost/ojs/v1/jobs', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: readable,
  });
  const answer = (exports as unknown as { default: Fetcher }).default.fetch(request);
  const writer = writable.getWriter();
  for (let at = 0; at < bytes.byteLength; at += piece) await writer.write(bytes.slice(at, at + piece));
  await writer.close();
  const response = await answer;
  return { status: response.status, body: (await response.json()) as Json };
}

/** Characters of one to four bytes. */
const textOf = (length: number) => Array.from({ length }, (_, at) => ['a', 'é', '€', '😀'][at % 4]).join('');
const jobWith = (text: string) => encoder.encode(JSON.stringify({ type: 'test.body', args: [text] }));

describe('a large body', () => {
  it('is read as it was written, wherever its pieces end', async () => {
    for (const [length, piece] of [
      [60_000, 16_384],
      [60_000, 16_381],
      [120_000, 65_537],
      [120_000, 1_000_000],
    ] as const) {
      const text = textOf(length);
      const { status, body } = await enqueue(jobWith(text), piece);
      expect(status).toBe(201);
      expect((body.job as Json).args).toEqual([text]);
    }
  });

  it('may begin with a byte order mark', async () => {
    const bytes = jobWith(textOf(60_000));
    expect((await enqueue(new Uint8Array([0xef, 0xbb, 0xbf, ...bytes]), 50_000)).status).toBe(201);
  });

  it('is refused where it is not UTF-8, in any of its parts', async () => {
    const bytes = jobWith(textOf(60_000));
    const wrong = (at: number, byte: number) => bytes.map((other, index) => (index === at ? byte : other));
    for (const at of [100, 16_383, 16_384, 70_000, bytes.byteLength - 10]) {
      const { status, body } = await enqueue(wrong(at, 0xff), 16_384);
      expect({ status, message: (body.error as Json).message }, String(at)).toEqual({
        status: 400,
        message: 'The body is not valid UTF-8.',
      });
    }
    const cut = await enqueue(new Uint8Array([...bytes, 0xe2, 0x82]), 16_384);
    expect((cut.body.error as Json).message).toBe('The body is not valid UTF-8.');
  });
});
