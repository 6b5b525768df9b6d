/**
 * When workers last asked for jobs, by the types that they take. In memory only: for explanations, not for decisions.
 */

/** Sets of types remembered at most; the one that was asked for longest ago is dropped first. */
const MAX_SETS = 50;

export class LastFetches {
  private readonly asked = new Map<string, { types: ReadonlySet<string> | undefined; at: number }>();

  /** A worker asks. @param name names the set of types @param types absent: it takes any */
  note(name: string, types: readonly string[] | undefined, at: number): void {
    this.asked.delete(name);
    this.asked.set(name, { types: types && new Set(types), at });
    const [oldest] = this.asked.keys();
    if (this.asked.size > MAX_SETS && oldest !== undefined) this.asked.delete(oldest);
  }

  /** When a worker that takes this type last asked, epoch ms; undefined when none has. */
  lastFor(type: string): number | undefined {
    const times = [...this.asked.values()].flatMap(({ types, at }) => (!types || types.has(type) ? at : []));
    return times.length === 0 ? undefined : Math.max(...times);
  }
}
