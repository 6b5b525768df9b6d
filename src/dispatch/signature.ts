/**
 * Signs calls to URLs, possibly in several ways at once:
 *
 * | kind | headers | what is signed |
 * |---|---|---|
 * | `standard` (Webhooks) | `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,…` | `id.timestamp.body` |
 * | `ojs` | `X-OJS-Timestamp`, `X-OJS-Signature: sha256=<hex>` | `timestamp.body` |
 * | `qstash` | `Upstash-Signature`: a JWT | the URL and the SHA-256 of the body, for five minutes |
 *
 * During a rotation both secrets sign, the new one first; a JWT has room for one signature only.
 */

import { hmacOf, jwtOf, utf8Of } from '../access/jwt';
import { base64Of, base64UrlOf, hexOf, sha256Of } from '../job/bytes';

export const SIGNATURES = ['standard', 'ojs', 'qstash'] as const;
export type Signature = (typeof SIGNATURES)[number];

export interface Signable {
  url: string;
  /** Names the call. No other call has it. */
  id: string;
  body: string;
  /** When it is sent, epoch ms. */
  at: number;
}

/** How long a JWT holds, seconds. */
const JWT_SECONDS = 300;

const BASE64_PREFIX = 'whsec_';

export const SINGLE_SECRET_RULE = 'must be 16 to 512 visible ASCII characters without a comma (after "whsec_": base64)';

export const SECRET_RULE =
  'must be one secret, or the new and the old one with a space between, each of 16 or more visible ASCII characters (after "whsec_": base64)';

/** The secrets in a text, the current one first; undefined when the text is invalid. */
export function parseSecrets(text: string): string[] | undefined {
  const secrets = text.split(/[\s,]+/).filter(Boolean);
  const fits = (secret: string) => /^[\x21-\x7e]{16,512}$/.test(secret) && standardKey(secret) !== undefined;
  return secrets.length >= 1 && secrets.length <= 2 && secrets.every(fits) ? secrets : undefined;
}

/** Standard Webhooks reads `whsec_…` as base64, with any padding; other secrets are used as written. */
function standardKey(secret: string): Uint8Array | undefined {
  if (!secret.startsWith(BASE64_PREFIX)) return utf8Of(secret);
  const digits = /^([A-Za-z\d+/]+)={0,2}$/.exec(secret.slice(BASE64_PREFIX.length))?.[1];
  if (digits === undefined) return undefined;
  // A last digit that stands alone holds no byte.
  const whole = atob(digits.length % 4 === 1 ? digits.slice(0, -1) : digits);
  return Uint8Array.from(whole, (character) => character.charCodeAt(0));
}

export async function signatureHeaders(
  kinds: readonly Signature[],
  secrets: readonly string[],
  call: Signable,
): Promise<Record<string, string>> {
  const seconds = String(Math.floor(call.at / 1000));
  const headers: Record<string, string> = {};
  if (kinds.includes('standard')) {
    headers['webhook-id'] = call.id;
    headers['webhook-timestamp'] = seconds;
    const text = `${call.id}.${seconds}.${call.body}`;
    const signed = secrets.map(
      async (secret) => `v1,${base64Of(await hmacOf(standardKey(secret) as Uint8Array, text))}`,
    );
    headers['webhook-signature'] = (await Promise.all(signed)).join(' ');
  }
  if (kinds.includes('ojs')) {
    const signed = secrets.map(
      async (secret) => `sha256=${hexOf(await hmacOf(utf8Of(secret), `${seconds}.${call.body}`))}`,
    );
    headers['X-OJS-Timestamp'] = seconds;
    headers['X-OJS-Signature'] = (await Promise.all(signed)).join(',');
  }
  if (kinds.includes('qstash')) headers['Upstash-Signature'] = await jwt(secrets[0] as string, call);
  return headers;
}

async function jwt(secret: string, { url, id, body, at }: Signable): Promise<string> {
  const now = Math.floor(at / 1000);
  const hash = base64UrlOf(await sha256Of(body));
  return jwtOf(secret, { body: hash, iss: 'Upstash', sub: url, iat: now, nbf: now, exp: now + JWT_SECONDS, jti: id });
}
