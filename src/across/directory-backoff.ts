/** Backing off from a directory that could not be asked, wherever work can continue without it. */
import type { Env } from '../config';
import { Backoff } from '../durable/backoff';
import { onEmptied } from '../durable/memory';
import { getOrInsert } from '../job/get-or-insert';

let rests = new WeakMap<Env, Backoff>();
onEmptied(() => {
  rests = new WeakMap();
});

/** This isolate's, for one deployment. */
export const directoryRest = (env: Env): Backoff => getOrInsert(rests, env, () => new Backoff(() => Date.now()));
