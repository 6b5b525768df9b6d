/**
 * What an isolate remembers of stored facts, to avoid reading them again. When storage is emptied, it must forget all
 * of that: routes are given out again, and a known fact need not hold any more.
 */
const forgetting: (() => void)[] = [];

/** Runs `forget` whenever storage is emptied. Each module that remembers something of it calls this while it loads. */
export function onEmptied(forget: () => void): void {
  forgetting.push(forget);
}

/** Storage was emptied: this isolate forgets what was there. Others are not notified; only tests empty storage. */
export function forgetStored(): void {
  for (const forget of forgetting) forget();
}
