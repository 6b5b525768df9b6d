/** Large bodies that arrive together: an isolate takes what it has room for, and refuses the rest for now. */

import { exports } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { type Json, server } from '../../support/server';

const MIB = 1024 * 1024;
const JOB = '{"jobs":[{"type":"test.held","args":[]}]}';

/** A batch of 15 MiB, most of it blanks, that does not say how long it is and ends when it is told to. */
function upload() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const request = new Request('http://localhost/ojs/v1/jobs/batch', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: readable,
  });
  const answer = (exports as unknown as { default: Fetcher }).default.fetch(request);
  const blanks = new Uint8Array(MIB).fill(32);
  return {
    answer,
    async send() {
      for (let sent = 0; sent < 15; sent++) await writer.write(blanks);
    },
    async finish(): Promise<{ status: number; body: Json }> {
      await writer.write(new TextEncoder().encode(JOB));
      await writer.close();
      const response = await answer;
      return { status: response.status, body: (await response.json()) as Json };
    },
  };
}

describe('large bodies at once', () => {
  it('are refused with 503 while there is no room for them, and taken again when there is', async () => {
    const [first, second] = [upload(), upload()];
    for (const one of [first, second]) await one.send();
    expect(await second.finish()).toMatchObject({
      status: 503,
      body: { error: { code: 'unavailable', retryable: true } },
    });
    expect(await first.finish()).toMatchObject({ status: 201 });
    const again = upload();
    await again.send();
    expect(await again.finish()).toMatchObject({ status: 201 });
    await server.add('test.held', []);
  });
});
