/** Waits for the promise, but no longer than `ms`. Leaves no timer behind: it would keep the object awake. */
export async function waitAtMost(ms: number, promise: Promise<unknown>): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    promise.finally(() => clearTimeout(timer)).then(() => resolve(), reject);
  });
}
