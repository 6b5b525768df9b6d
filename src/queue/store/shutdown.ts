/** A process about to end hands out no jobs. In memory, short and renewed, so that one that did not end continues. */

let until = Number.NEGATIVE_INFINITY;
let calls = 0;

/** Until when no queue of this process hands out jobs, epoch ms. */
export const restsUntil = (): number => until;

/** No queue of this process hands out jobs before `at`, epoch ms. @returns calls to handlers under way */
export function rest(at: number): number {
  until = at;
  return calls;
}

/** Counts a call to a handler until the outcome of its jobs is written. */
export async function counted<T>(call: Promise<T>): Promise<T> {
  calls++;
  try {
    return await call;
  } finally {
    calls--;
  }
}
