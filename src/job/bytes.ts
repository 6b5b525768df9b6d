const encoder = new TextEncoder();

/** Overwritten each time: only what is written into it counts, and a copy of a long text would cost more. */
const scratch = new Uint8Array(16_384);

/** Bytes that a text takes in UTF-8. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (let rest = text; rest !== ''; ) {
    const { read, written } = encoder.encodeInto(rest, scratch);
    bytes += written;
    rest = rest.slice(read);
  }
  return bytes;
}

/** Does a text take at most `max` bytes in UTF-8? A unit takes at most three, so most texts need not be encoded. */
export const fitsBytes = (text: string, max: number): boolean => text.length * 3 <= max || utf8Bytes(text) <= max;

/** Bytes as base64, padded. */
export const base64Of = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));

export const base64UrlOf = (bytes: Uint8Array): string => base64Of(bytes).replaceAll('+', '-').replaceAll('/', '_');

/** Bytes as base64 with the alphabet for URLs, without padding. */
export const unpaddedBase64UrlOf = (bytes: Uint8Array): string => base64UrlOf(bytes).replace(/=+$/, '');

export const hexOf = (bytes: Iterable<number>): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** SHA-256 of a text in UTF-8. */
export const sha256Of = async (text: string): Promise<Uint8Array> =>
  new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(text)));

/** The bytes of base64 with the alphabet for URLs. @throws {Error} */
export const bytesOfBase64Url = (text: string) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
