/** Binary search: the first index for which `holds` is true, as it is for all later ones; `length`: none. */
export function firstIndex(length: number, holds: (at: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
