/** The room that an isolate has for bodies, over HTTP. */
import { expect, it } from 'vitest';
import { clock, MINUTE } from '../support/clock';
import { server, V1 } from '../support/server';

clock.startAtT0();

/** A request that says how large its body is and never sends it: the runtime may drop such a one without a word. */
function stuck(bytes: number) {
  const { readable, writable } = new FixedLengthStream(bytes);
  const writer = writable.getWriter();
  const headers = { 'Content-Type': 'application/json', 'Content-Length': String(bytes) };
  const answer = Promise.resolve(
    server.send(new Request(`http://localhost${V1}/jobs/batch`, { method: 'POST', headers, body: readable })),
  );
  answer.catch(() => undefined);
  return async () => {
    await writer.abort(new Error('over')).catch(() => undefined);
    await answer.catch(() => undefined);
  };
}

it('is given back by requests that were dropped, after two minutes', async () => {
  const ends = [stuck(16 * 1024 * 1024), stuck(16 * 1024 * 1024), stuck(16 * 1024 * 1024)];
  const job = { type: 'a.b', args: [], options: { queue: 'held' } };
  await expect
    .poll(async () => (await server.send(new Request(`http://localhost${V1}/jobs`, asJson(job)))).status)
    .toBe(503);
  clock.advance(3 * MINUTE);
  await server.ok(201, 'POST', `${V1}/jobs`, job);
  await Promise.all(ends.map((end) => end()));
  await server.ok(201, 'POST', `${V1}/jobs`, job);
});

const asJson = (body: unknown) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});
