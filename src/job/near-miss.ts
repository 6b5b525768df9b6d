/** Which name was probably meant: the one that differs from what was written by a slip of the keyboard. */

/** Slips in a name of this many characters are one; a longer name may have one for each such part. */
const CHARS_PER_SLIP = 5;
const MAX_SLIPS = 3;
const MAX_NAMES = 2_000;

/** How many slips a name of this length may have and still be recognised. */
export const slipsAllowed = (length: number): number =>
  Math.min(MAX_SLIPS, Math.max(1, Math.floor(length / CHARS_PER_SLIP)));

/** Edits (insert, delete, replace, swap neighbours) between two texts; `max + 1` for more. Reads only that band. */
export function slipsBetween(a: string, b: string, max: number): number {
  const tooMany = max + 1;
  if (Math.abs(a.length - b.length) > max) return tooMany;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  let leastBefore = 0;
  for (let i = 1; i <= a.length; i++) {
    const row: number[] = [i];
    const [from, to] = [Math.max(1, i - max), Math.min(b.length, i + max)];
    let least = from === 1 ? i : tooMany;
    const cell = (cells: number[], at: number) => cells[at] ?? tooMany;
    for (let j = from; j <= to; j++) {
      const same = a[i - 1] === b[j - 1];
      let slips = Math.min(cell(last, j - 1) + (same ? 0 : 1), cell(last, j) + 1, cell(row, j - 1) + 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) slips = Math.min(slips, cell(before, j - 2) + 1);
      row[j] = slips;
      least = Math.min(least, slips);
    }
    // A swap reaches over one row, so the row before must be beyond reach too.
    if (least > max && leastBefore > max) return tooMany;
    leastBefore = least;
    before = last;
    last = row;
  }
  return Math.min(last[b.length] ?? tooMany, tooMany);
}

/** The nearest known name; undefined: none is near, or it is known. `x.*` stands for all below it. Case is ignored. */
export function nearMiss(written: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let fewest = Number.POSITIVE_INFINITY;
  let looked = 0;
  for (const name of known) {
    if (looked++ === MAX_NAMES) break;
    const meant = name.endsWith('.*') ? below(written, name.slice(0, -2)) : name;
    if (meant === undefined || meant === '*') continue;
    if (meant === written) return undefined;
    const max = slipsAllowed(Math.min(written.length, name.length));
    const slips = slipsBetween(written.toLowerCase(), meant.toLowerCase(), max);
    if (slips > max || slips >= fewest) continue;
    best = meant;
    fewest = slips;
  }
  return best;
}

/** `written` with its first segments replaced by `prefix`; undefined when it has no more segments than that. */
function below(written: string, prefix: string): string | undefined {
  const rest = written.split('.').slice(prefix.split('.').length);
  return rest.length === 0 ? undefined : [prefix, ...rest].join('.');
}

/** The question after a sentence about an unknown name: ` Did you mean "…"?`, or nothing. */
export function didYouMean(written: string, known: Iterable<string>): string {
  const meant = nearMiss(written, known);
  return meant === undefined ? '' : ` Did you mean "${meant}"?`;
}

/** ` Did you mean "…"?` for a slip, or the beginning or end of a known name (`attempts` of `max_attempts`); or ``. */
export function suggestion(name: string, known: readonly string[]): string {
  const part = name.toLowerCase();
  const isPart = (other: string) => {
    const words = other.replace(/[A-Z]/g, '_$&').toLowerCase();
    return words.startsWith(`${part}_`) || words.endsWith(`_${part}`);
  };
  const meant = nearMiss(name, known) ?? known.find(isPart);
  return meant === undefined ? '' : ` Did you mean "${meant}"?`;
}

/** The end of a sentence that refuses a member: the known ones, and the one probably meant. */
export const notKnown = (path: string, known: readonly string[]): string =>
  `is not known; use one of ${known.join(', ')}.${suggestion(path.slice(path.lastIndexOf('.') + 1), known)}`;
