/** Which objects work on something beside their requests: they keep themselves alive for it by `waitUntil`. */

/** How long one look at an object waits for its work, in real ms: others are looked at in between. */
const LOOK_MS = 50;

type WaitingState = Pick<DurableObjectState, 'waitUntil'>;

// Taken at load: a test may fake it.
const realTimer = setTimeout;

let isWatched = false;
let promises = new WeakMap<WaitingState, Set<Promise<unknown>>>();
let count = 0;

/** How often work was begun. */
export function worksBegun(): number {
  return count;
}

/** Tracks the work of all objects of this isolate from now on. @param state of any of them */
export function watchWork(state: WaitingState): void {
  if (isWatched) return;
  isWatched = true;
  const states = Object.getPrototypeOf(state) as WaitingState;
  const { waitUntil } = states;
  states.waitUntil = function (this: WaitingState, work: Promise<unknown>): void {
    waitUntil.call(this, work);
    add(this, Promise.resolve(work));
  };
}

/** What still continues is ignored. */
export function forgetWork(): void {
  promises = new WeakMap();
}

/** Waits a moment for the work of an object; called inside of it. @returns whether there was any */
export async function settleWork(state: WaitingState): Promise<boolean> {
  const own = promises.get(state);
  if (!own?.size) return false;
  const enough = new Promise((resolve) => realTimer(resolve, LOOK_MS));
  await Promise.race([Promise.allSettled([...own]), enough]);
  return true;
}

function add(owner: WaitingState, work: Promise<unknown>): void {
  count++;
  const own = promises.get(owner) ?? new Set();
  promises.set(owner, own);
  own.add(work);
  const end = () => void own.delete(work);
  work.then(end, end);
}
