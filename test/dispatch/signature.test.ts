import { Receiver } from '@upstash/qstash';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { parseSecrets, signatureHeaders } from '../../src/dispatch/signature';

const base64 = 'whsec_c2VjcmV0LW9mLXRoZS10ZXN0cy0x';
const raw = 'whk_secret-of-the-tests';
const message = (change: object = {}) => ({
  url: 'https://app.example/hooks?a=1',
  id: 'del_1',
  body: '{"job":{"args":["ünï"]}}',
  at: Date.now(),
  ...change,
});

/** Does an unchanged receiver of Standard Webhooks take these headers for this body? */
function isTaken(secret: string, headers: Record<string, string>, body: string): boolean {
  const webhook = secret.startsWith('whsec_') ? new Webhook(secret) : new Webhook(secret, { format: 'raw' });
  try {
    webhook.verify(body, headers);
    return true;
  } catch {
    return false;
  }
}

describe('a signature of Standard Webhooks', () => {
  it.each([base64, raw])('with %s is taken by its library, for this body alone', async (secret) => {
    const call = message();
    const headers = await signatureHeaders(['standard'], [secret], call);
    expect(headers['webhook-id']).toBe('del_1');
    expect(isTaken(secret, headers, call.body)).toBe(true);
    expect(isTaken(secret, headers, `${call.body} `)).toBe(false);
    expect(isTaken(secret, { ...headers, 'webhook-id': 'del_2' }, call.body)).toBe(false);
    expect(isTaken('another-secret-of-tests', headers, call.body)).toBe(false);
  });

  it.each(['', '=', '=='])('with a secret that ends in "%s" has the key that its library reads', async (padding) => {
    const call = message();
    for (const digits of ['c2VjcmV0LW9m', 'c2VjcmV0LW9mL', 'c2VjcmV0LW9mLX', 'c2VjcmV0LW9mLXR']) {
      const secret = `whsec_${digits}${padding}`;
      expect(parseSecrets(secret), secret).toEqual([secret]);
      const headers = await signatureHeaders(['standard'], [secret], call);
      expect(isTaken(secret, headers, call.body), secret).toBe(true);
    }
  });

  it('has both secrets while one is replaced', async () => {
    const call = message();
    const headers = await signatureHeaders(['standard'], [base64, raw], call);
    expect([isTaken(base64, headers, call.body), isTaken(raw, headers, call.body)]).toEqual([true, true]);
  });
});

describe('a signature of OJS', () => {
  it('is the HMAC of time and body, with the secret as it is written', async () => {
    // As OpenSSL computes it: printf '1700000000.{}' | openssl dgst -sha256 -hmac whk_secret-of-the-tests
    const call = message({ body: '{}', at: 1_700_000_000_999 });
    expect(await signatureHeaders(['ojs'], [raw], call)).toEqual({
      'X-OJS-Timestamp': '1700000000',
      'X-OJS-Signature': 'sha256=a8e6f5d9edfd89bfbde70737a87ac86ce17d9fc561f89442a1cb7cf6480b49ad',
    });
    const both = await signatureHeaders(['ojs'], [base64, raw], call);
    expect(both['X-OJS-Signature']).toBe(
      'sha256=37f281cc88203b42148ff6c377a8793596e173f5946c2d051600a6b1308d4de1,sha256=a8e6f5d9edfd89bfbde70737a87ac86ce17d9fc561f89442a1cb7cf6480b49ad',
    );
  });
});

describe('a signature of QStash', () => {
  const receiver = (currentSigningKey: string, nextSigningKey: string) =>
    new Receiver({ currentSigningKey, nextSigningKey });

  it('is verified by the unchanged receiver, with its current or its next key', async () => {
    const call = message();
    const { 'Upstash-Signature': signature = '' } = await signatureHeaders(['qstash'], [raw, base64], call);
    const asked = { signature, body: call.body, url: call.url };
    expect(await receiver(raw, 'another-key-of-tests').verify(asked)).toBe(true);
    expect(await receiver('another-key-of-tests', raw).verify(asked)).toBe(true);
  });

  it('is not verified for another body, URL, key or time', async () => {
    const call = message();
    const { 'Upstash-Signature': signature = '' } = await signatureHeaders(['qstash'], [raw], call);
    const asked = { signature, body: call.body, url: call.url };
    const mine = receiver(raw, raw);
    await expect(mine.verify({ ...asked, body: '{}' })).rejects.toThrow();
    await expect(mine.verify({ ...asked, url: 'https://other.example/' })).rejects.toThrow();
    await expect(receiver('another-key-of-tests', 'and-one-more-of-tests').verify(asked)).rejects.toThrow();
    const early = await signatureHeaders(['qstash'], [raw], message({ at: Date.now() - 301_000 }));
    await expect(mine.verify({ ...asked, signature: early['Upstash-Signature'] ?? '' })).rejects.toThrow();
  });
});

describe('the secrets of a target', () => {
  it('are one, or two while one is replaced', () => {
    expect(parseSecrets(raw)).toEqual([raw]);
    expect(parseSecrets(` ${base64}, ${raw}\n`)).toEqual([base64, raw]);
  });

  it.each([
    '',
    ' ',
    'short',
    'fifteen-letters',
    'whsec_not*base64*at*all',
    'whsec_',
    'whsec_c2VjcmV0LW9mL===',
    'whsec_c2Vj=cmV0LW9mLXRo',
    'sécret-of-the-tests',
    `${raw} ${raw} ${raw}`,
    'a'.repeat(513),
  ])('are not %j', (text) => {
    expect(parseSecrets(text)).toBeUndefined();
  });
});
