/** Which lock object a fingerprint belongs to. */

/** Name of the object that knows which lock objects are in use. */
export const REGISTER = 'register';

/** The lock object of a fingerprint: one of 256, so that unrelated jobs hardly ever share one. */
export function shardOf(fingerprint: string): string {
  return fingerprint.slice(0, 2);
}
