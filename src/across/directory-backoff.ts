/** Backing off from a directory that could not be asked, wherever work can continue without it. */
import type { Env } from '../config';
import { Backoff } from '../durable/backoff';
import { onEmptied } from '../durable/memory';

let rests = new WeakMap<Env, Backoff>();
onEmptied(() => {
  rests = new WeakMap();
});

/** This isolate's, for one deployment. */
export function directoryRest(env: Env): Backoff {
  let rest = rests.get(env);
  if (!rest) {
    rest = new Backoff(() => Date.now());
    rests.set(env, rest);
  }
  return rest;
}
