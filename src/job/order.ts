/** The order of a list that is sorted by one of its jobs' values. */

/** What a sorted list knows of a job. */
export interface Sortable {
  /** What it is sorted by; null for a job that has none. */
  value: number | null;
  /** Epoch ms; absent where all jobs are of one queue, in which `position` says the same. */
  created_at?: number;
  /** Its place among the jobs of its queue, in the order of their creation. */
  position: number;
}

/** Compares jobs. Jobs without the value come last in both directions; equal values in the order of creation. */
export function inOrder(descending: boolean): (a: Sortable, b: Sortable) => number {
  const sign = descending ? -1 : 1;
  return (a, b) => {
    if (a.value !== b.value) {
      if (a.value === null) return 1;
      if (b.value === null) return -1;
      return sign * (a.value - b.value);
    }
    return sign * ((a.created_at ?? 0) - (b.created_at ?? 0) || a.position - b.position);
  };
}
