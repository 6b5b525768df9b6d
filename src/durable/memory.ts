/**
 * What an isolate remembers of what is stored, so as not to ask again. Where storage is emptied, all of that has to be forgotten
 * with it: routes are given out anew, and what was known once need not be so any more.
 */
const forgetting: (() => void)[] = [];

/** Runs `forget` whenever storage is emptied. Each module that remembers something of it calls this while it loads. */
export function onEmptied(forget: () => void): void {
  forgetting.push(forget);
}

/** Storage was emptied: this isolate forgets what was there. Others do not hear of it; only tests empty storage. */
export function forgetStored(): void {
  for (const forget of forgetting) forget();
}
