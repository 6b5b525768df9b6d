import type { After } from './timers';

/** Waits for the promise, but no longer than `ms`. */
export async function waitAtMost(after: After, ms: number, promise: Promise<unknown>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const end = after(ms, resolve);
    promise.finally(end).then(() => resolve(), reject);
  });
}
