/** JSON Web Tokens (HS256), and what they are made of. */
import { unpaddedBase64UrlOf } from '../job/bytes';

export const utf8Of = (text: string) => new TextEncoder().encode(text);

export const hmacKey = (secret: ReturnType<typeof utf8Of>) =>
  crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);

export const hmacOf = async (secret: ReturnType<typeof utf8Of>, text: string): Promise<Uint8Array> =>
  new Uint8Array(await crypto.subtle.sign('HMAC', await hmacKey(secret), utf8Of(text)));

/** @param header further members of its header */
export async function jwtOf(secret: string, claims: object, header: object = {}): Promise<string> {
  const parts = [{ alg: 'HS256', typ: 'JWT', ...header }, claims];
  const text = parts.map((part) => unpaddedBase64UrlOf(utf8Of(JSON.stringify(part)))).join('.');
  return `${text}.${unpaddedBase64UrlOf(await hmacOf(utf8Of(secret), text))}`;
}
