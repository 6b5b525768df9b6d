/** Waiting, but not for ever. */

/** Waits for the promise, but no longer than `ms`. Leaves no timer behind: it would keep the object awake. */
export async function waitAtMost(ms: number, promise: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  const late = scheduler.wait(ms, { signal: over.signal }).catch(() => undefined);
  await Promise.race([promise, late]);
  over.abort();
}

/** As {@link waitAtMost}, for the value. @throws what `late` makes when it takes longer */
export async function within<T>(ms: number, promise: Promise<T>, late: () => Error): Promise<T> {
  let isOver = false;
  const over = promise.then(
    () => undefined,
    () => undefined,
  );
  await waitAtMost(
    ms,
    over.then(() => {
      isOver = true;
    }),
  );
  if (!isOver) throw late();
  return promise;
}
