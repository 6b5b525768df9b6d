/**
 * The first index for which this holds, as it does for all after it; `length`: for none. Asks about log2(length) of
 * them.
 */
export function firstIndex(length: number, holds: (at: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
