/** Waiting, but not for ever. */

/** Waits for the promise, but no longer than `ms`. Leaves no timer behind: it would keep the object awake. */
export async function waitAtMost(ms: number, promise: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const late = scheduler.wait(ms, { signal: over.signal }).catch(() => undefined);
  await Promise.race([promise, late]);
  over.abort();
}
