/** One attempt at a receiver, with a network of our own. */
import { describe, expect, it } from 'vitest';
import { sendWebhook, type WebhookCall } from '../../src/dispatch/webhook';
import { requestTimer } from '../../src/durable/timers';

const CALL: WebhookCall = {
  url: 'https://hook.example/in',
  id: 'whd_1',
  subscription: 'wh_1',
  eventType: 'job.completed',
  body: '{"a":1}',
  secrets: ['a-secret-of-tests-1'],
};

/** Sends it into this network. @returns the attempt, and the URLs that were called */
async function attempt(
  answer: (request: Request) => Response | Promise<Response>,
  {
    call = {},
    loopback = false,
    timeoutMs = 1_000,
  }: { call?: Partial<WebhookCall>; loopback?: boolean; timeoutMs?: number } = {},
) {
  const seen: string[] = [];
  const fetch = async (request: Request) => {
    seen.push(request.url);
    expect(request.method).toBe('POST');
    expect(request.redirect).toBe('manual');
    expect(await request.clone().text()).toBe(CALL.body);
    return answer(request);
  };
  const ended = await sendWebhook(
    { ...CALL, ...call },
    { loopback },
    { fetch, now: () => 1_000, after: requestTimer, timeoutMs },
  );
  return { ended, seen };
}

const redirect = (status: number, location: string) => new Response(null, { status, headers: { Location: location } });

describe('an attempt', () => {
  it('keeps the beginning of the answer and no more', async () => {
    const { ended } = await attempt(() => new Response('é'.repeat(100_000)));
    expect(ended).toMatchObject({ status: 200, response: 'é'.repeat(1024) });
  });

  it('says when there was no answer in time, and does not wait for the rest of one', async () => {
    const { ended } = await attempt(
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
      { timeoutMs: 20 },
    );
    expect(ended).toMatchObject({ error: 'No answer within 20 ms.', response: '' });
    expect(ended).not.toHaveProperty('status');
  });

  it('says why there was no answer', async () => {
    const { ended } = await attempt(() => {
      throw new Error('connection refused');
    });
    expect(ended).toMatchObject({ error: 'No answer: connection refused' });
  });

  it('tells what pause the receiver asks for', async () => {
    const { ended } = await attempt(() => new Response(null, { status: 503, headers: { 'Retry-After': '7' } }));
    expect(ended).toMatchObject({ status: 503, retryAfterMs: 7_000 });
  });

  it.each(['http://hook.example/', 'https://10.0.0.1/', 'https://localhost/', 'https://hook.example:99/'])(
    'is not made at %s, whatever was saved',
    async (url) => {
      const { ended, seen } = await attempt(() => new Response(), { call: { url } });
      expect(seen).toEqual([]);
      expect(ended).toMatchObject({ refused: true });
    },
  );

  it('is made at this machine where that is allowed', async () => {
    const call = { url: 'http://localhost:9/in' };
    expect((await attempt(() => new Response(), { call, loopback: true })).seen).toEqual([call.url]);
  });

  it.each([307, 308])('follows %i on the same host', async (status) => {
    const { ended, seen } = await attempt(({ url }) =>
      url.endsWith('/in') ? redirect(status, '/there') : new Response('there'),
    );
    expect(seen).toEqual([CALL.url, 'https://hook.example/there']);
    expect(ended).toMatchObject({ status: 200, response: 'there' });
  });

  it.each([
    [301, '/there'],
    [302, '/there'],
    [303, 'https://hook.example/there'],
    [307, 'https://other.example/there'],
    [307, 'http://hook.example/there'],
    [307, 'https://hook.example:8443/there'],
    [308, 'https://10.0.0.1/'],
    [308, '//localhost/'],
    [308, 'https://user:pw@hook.example/'],
  ])('does not follow %i to %s', async (status, location) => {
    const { ended, seen } = await attempt(() => redirect(status, location));
    expect(seen).toEqual([CALL.url]);
    expect(ended).toMatchObject({ status, error: expect.stringContaining('edirect') });
  });

  it('follows three redirects and no more', async () => {
    const { ended, seen } = await attempt(() => redirect(307, '/again'));
    expect(seen).toHaveLength(4);
    expect(ended).toMatchObject({ status: 307, error: 'It redirects too many times.' });
  });
});
