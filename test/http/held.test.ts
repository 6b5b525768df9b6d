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

const MIB = 1024 * 1024;
const JOB = { type: 'a.b', args: [], options: { queue: 'held' } };
const enqueue = async () => (await server.send(new Request(`http://localhost${V1}/jobs`, asJson(JOB)))).status;

/** What an enqueue is answered, seconds passing until then. */
async function enqueueInTime(): Promise<number> {
  let status: number | undefined;
  const answered = enqueue().then((answer) => {
    status = answer;
  });
  while (status === undefined) {
    clock.advance(1_000);
    await scheduler.wait(5);
  }
  await answered;
  return status;
}

it('is given back by requests that were dropped, after two minutes', async () => {
  const ends = [stuck(16 * MIB), stuck(8 * MIB)];
  await expect.poll(enqueueInTime).toBe(503);
  clock.advance(3 * MINUTE);
  expect(await enqueue()).toBe(201);
  await Promise.all(ends.map((end) => end()));
  expect(await enqueue()).toBe(201);
});

it('is waited for', async () => {
  const [end, other] = [stuck(16 * MIB), stuck(8 * MIB)];
  await expect.poll(enqueueInTime).toBe(503);
  // Time stands still: only room lets it through.
  const waiting = enqueue();
  await end();
  expect(await waiting).toBe(201);
  await other();
});

it('is taken by pages of jobs only until they are answered', async () => {
  await server.ok(201, 'POST', `${V1}/jobs`, JOB);
  for (const path of [
    '/jobs?queue=held',
    '/jobs?queue=held&page=1',
    '/admin/jobs?sort=priority',
    '/dead-letter?page=1',
  ]) {
    // Time stands still: one that found no room would wait for ever.
    const pages = Array.from({ length: 10 }, () => server.ok(200, 'GET', `${V1}${path}`));
    expect(await Promise.all(pages)).toHaveLength(10);
  }
});

const asJson = (body: unknown) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});
