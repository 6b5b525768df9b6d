/** Bytes of texts, and bytes as text. */

const encoder = new TextEncoder();

/** Bytes that a text takes in UTF-8. */
export const utf8Bytes = (text: string): number => encoder.encode(text).byteLength;

/**
 * Does a text take at most `max` bytes in UTF-8? No character takes more than three: most texts need not be counted.
 */
export const fitsBytes = (text: string, max: number): boolean => text.length * 3 <= max || utf8Bytes(text) <= max;

/** Bytes as hexadecimal digits. */
export const hexOf = (bytes: Iterable<number>): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
