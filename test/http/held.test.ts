/** The room that an isolate has for bodies, over HTTP. */
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import type { Env } from '../../src/config';
import { createApp } from '../../src/http/app';
import { clock, SECOND, until } from '../support/clock';
import { server, TestServer, V1 } from '../support/server';

clock.startAtT0();

const guarded = TestServer.with({ API_KEYS: JSON.stringify([{ key: 'k' }]) });
const KEY = { Authorization: 'Bearer k' };
const MIB = 1024 * 1024;
const JOB = { type: 'a.b', args: [], options: { queue: 'held' } };
const enqueue = async () => (await guarded.call('POST', `${V1}/jobs`, JOB, KEY)).status;
const trusted = createApp({ trusted: true });
/** As `tocsin.enqueue` in a Worker that holds the queue. */
const inside = new TestServer((request) => trusted.fetch(request, env as unknown as Env));

/** A request that says how large its body is, sends a part of it, and no more until it is told to. */
function sending(path: string, announced: number, headers: Record<string, string> = KEY) {
  const { readable, writable } = new FixedLengthStream(announced);
  const writer = writable.getWriter();
  const request = new Request(`http://localhost${V1}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Content-Length': String(announced), ...headers },
    body: readable,
  });
  const answer = Promise.resolve(guarded.send(request));
  answer.catch(() => undefined);
  return {
    answer,
    /** Ends once so many bytes have been taken. */
    send: (bytes: number) => writer.write(new Uint8Array(bytes).fill(32)),
    close: () => writer.close(),
    async drop() {
      await writer.abort(new Error('over')).catch(() => undefined);
      await answer.catch(() => undefined);
    },
  };
}

/** The status of an answer, seconds passing until it comes. */
async function inTime(answer: Promise<Response>): Promise<{ status: number; body: unknown; after: number }> {
  const begun = Date.now();
  let answered: Response | undefined;
  answer.then((response) => {
    answered = response;
  });
  const response = await until(() => {
    if (!answered) clock.advance(SECOND / 20);
    return answered;
  }, 'an answer');
  return { status: response.status, body: await response.json(), after: Date.now() - begun };
}

describe('a body that is announced and does not arrive', () => {
  it('takes no room, with a key or without', async () => {
    const slow = [
      ...Array.from({ length: 40 }, () => sending('/admin/session', MIB, {})),
      ...Array.from({ length: 40 }, () => sending('/admin/session', 4_000, {})),
      ...Array.from({ length: 40 }, () => sending('/jobs', MIB)),
      ...Array.from({ length: 40 }, () => sending('/jobs', 10_000)),
    ];
    await Promise.all(slow.map((one) => one.send(1)));
    // Time stands still: one that found no room would wait for ever.
    expect(await enqueue()).toBe(201);
    await guarded.ok(200, 'POST', `${V1}/admin/session`, { key: 'k' });
    await inside.ok(201, 'POST', `${V1}/jobs`, JOB);
    await Promise.all(slow.map((one) => one.drop()));
  });

  it.each([
    ['/jobs', 10_000],
    ['/jobs/batch', 10 * MIB],
  ])('ends its request to %s with 408', async (path, announced) => {
    const slow = sending(path, announced);
    await slow.send(1);
    const { status, body, after } = await inTime(slow.answer);
    expect({ status, body }).toMatchObject({
      status: 408,
      body: { error: { code: 'timeout', retryable: true, details: { allowed_ms: expect.any(Number) } } },
    });
    expect(after).toBeGreaterThanOrEqual(10 * SECOND);
    await slow.drop();
  });

  it('has more time where much has arrived, and never more than it takes to forget a client', async () => {
    const steady = sending('/jobs/batch', 12 * MIB);
    await steady.send(2 * MIB);
    clock.advance(30 * SECOND);
    await steady.send(9 * MIB);
    clock.advance(50 * SECOND);
    await steady.send(1);
    const { status, body, after } = await inTime(steady.answer);
    expect({ status, body }).toMatchObject({ status: 408, body: { error: { details: { allowed_ms: 90 * SECOND } } } });
    // By what arrived alone it would have more than 100 s left. The clock here runs ahead of the timer that looks at it.
    expect(after).toBeLessThan(60 * SECOND);
    await steady.drop();
  });
});

describe('bodies that have arrived', () => {
  it('keep others waiting that come from where they come, and no one else', async () => {
    const large = [sending('/jobs/batch', 14 * MIB), sending('/jobs/batch', 13 * MIB)];
    await large[0]?.send(13.9 * MIB);
    await large[1]?.send(11.99 * MIB);
    // One is apart; the other has the room for all others with a key.
    await inside.ok(201, 'POST', `${V1}/jobs`, JOB);
    await guarded.ok(200, 'POST', `${V1}/admin/session`, { key: 'k' });
    const third = sending('/jobs', 15_000);
    await third.send(15_000);
    await third.close();
    expect(await inTime(third.answer)).toMatchObject({ status: 503 });
    const fourth = sending('/jobs', 15_000);
    await fourth.send(15_000);
    await fourth.close();
    await large[1]?.drop();
    // Time stands still: only room lets it through, to be told that blanks are no job.
    expect((await fourth.answer).status).toBe(400);
    await large[0]?.drop();
    expect(await enqueue()).toBe(201);
  });
});

it('a login takes 4 KiB at most', async () => {
  const answer = await guarded.call('POST', `${V1}/admin/session`, { key: 'x'.repeat(5_000) });
  expect(answer).toMatchObject({ status: 413, body: { error: { details: { max_bytes: 4_096 } } } });
});

it('room is taken by pages of jobs only until they are answered', async () => {
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
