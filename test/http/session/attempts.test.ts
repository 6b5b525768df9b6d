/** How often one may try to log in. */
import { describe, expect, it } from 'vitest';
import { Attempts } from '../../../src/http/session/attempts';
import { T0 } from '../../support/clock';
import { TestServer, V1 } from '../../support/server';

const guarded = TestServer.with({ API_KEYS: JSON.stringify([{ key: 'right' }]) });
const login = (key: string, address: string) =>
  guarded.call('POST', `${V1}/admin/session`, { key }, { 'CF-Connecting-IP': address });

describe('an address', () => {
  it('that fails ten times is refused, and no other address with it', async () => {
    for (let i = 0; i < 10; i++) expect((await login('wrong', '192.0.2.1')).status).toBe(401);
    const refused = await login('right', '192.0.2.1');
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'rate_limited', retryable: true } } });
    expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(0);
    expect(Number(refused.headers.get('Retry-After'))).toBeLessThanOrEqual(60);
    expect((await login('right', '192.0.2.2')).status).toBe(200);
    // A program that has the key is not kept out by a browser.
    const headers = { 'CF-Connecting-IP': '192.0.2.1', Authorization: 'Bearer right' };
    await guarded.ok(200, 'GET', `${V1}/admin/session`, undefined, headers);
  });

  it('is that of the connection where no proxy names one', async () => {
    const from = async (clientIp: string) => {
      const request = new Request(`http://localhost${V1}/admin/session`, {
        ...{ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"key":"wrong"}' },
        cf: { clientIp },
      } as RequestInit);
      return (await guarded.send(request)).status;
    };
    for (let i = 0; i < 10; i++) expect(await from(`192.0.2.9:${5_000 + i}`)).toBe(401);
    expect(await from('192.0.2.9:7')).toBe(429);
    for (let i = 0; i < 10; i++) expect(await from(`[2001:db8:0:7::${i}]:443`)).toBe(401);
    expect(await from('[2001:db8:0:7::99]:443')).toBe(429);
    expect(await from('192.0.2.10:7')).toBe(401);
  });

  it('may log in as often as it likes with the right key', async () => {
    for (let i = 0; i < 30; i++) expect((await login('right', '192.0.2.3')).status).toBe(200);
  });
});

describe('attempts', () => {
  const fails = (attempts: Attempts, address: string | undefined, now = T0) => {
    try {
      attempts.begin(address, now);
      return false;
    } catch {
      return true;
    }
  };

  it('count from their beginning, for a minute', () => {
    const attempts = new Attempts();
    const forgive = Array.from({ length: 10 }, () => attempts.begin('192.0.2.1', T0));
    expect(fails(attempts, '192.0.2.1')).toBe(true);
    forgive[0]?.();
    expect(fails(attempts, '192.0.2.1')).toBe(false);
    expect(fails(attempts, '192.0.2.1', T0 + 60_000)).toBe(false);
  });

  it('of a network of IPv6 count together', () => {
    const attempts = new Attempts();
    for (let i = 0; i < 10; i++) attempts.begin(`2001:db8:0:7::${i}`, T0);
    expect(fails(attempts, '2001:DB8::7:0:0:0:99')).toBe(true);
    expect(fails(attempts, '2001:db8:0:8::1')).toBe(false);
  });

  it('of very many addresses leave each its first', () => {
    const attempts = new Attempts();
    for (let i = 0; i < 20_000; i++) attempts.begin(`10.0.${i >> 8}.${i & 255}`, T0);
    expect(fails(attempts, '192.0.2.1')).toBe(false);
    expect(fails(attempts, '192.0.2.1')).toBe(true);
  });

  it('without an address are limited together', () => {
    const attempts = new Attempts();
    const taken = Array.from({ length: 250 }, () => fails(attempts, undefined)).filter((failed) => !failed);
    expect(taken).toHaveLength(200);
  });
});
