import { firstIndex } from '../../job/bisect';

const MAX_PIECE = 512;

/** @typeParam P what an item is compared by */
export class SortedList<T extends P, P> {
  private pieces: T[][] = [];

  /** @param compare negative: the first comes before the second. No two items of the list may be equal */
  constructor(private readonly compare: (a: P, b: P) => number) {}

  get isEmpty(): boolean {
    return this.pieces.length === 0;
  }

  get first(): T | undefined {
    return this.pieces[0]?.[0];
  }

  *all(): Generator<T> {
    for (const piece of this.pieces) yield* piece;
  }

  /** Fills the empty list. @param items in any order; sorted by this call */
  fill(items: T[]): void {
    items.sort(this.compare);
    const size = MAX_PIECE / 2;
    for (let from = 0; from < items.length; from += size) this.pieces.push(items.slice(from, from + size));
  }

  add(item: T): void {
    const at = Math.min(this.pieceFor(item), this.pieces.length - 1);
    const piece = this.pieces[at];
    if (!piece) {
      this.pieces.push([item]);
      return;
    }
    piece.splice(this.placeIn(piece, item), 0, item);
    if (piece.length > MAX_PIECE) this.pieces.splice(at + 1, 0, piece.splice(MAX_PIECE / 2));
  }

  delete(item: T): void {
    const at = this.pieceFor(item);
    const piece = this.pieces[at];
    if (!piece) return;
    const place = this.placeIn(piece, item);
    if (piece[place] !== item) return;
    piece.splice(place, 1);
    if (piece.length === 0) this.pieces.splice(at, 1);
  }

  /** The items after a position, in order. Do not change the list meanwhile. */
  *after(position: P): Generator<T> {
    for (let at = this.pieceFor(position); at < this.pieces.length; at++) {
      const piece = this.pieces[at] as T[];
      let place = this.placeIn(piece, position);
      for (; place < piece.length; place++) {
        const item = piece[place] as T;
        if (this.compare(item, position) > 0) yield item;
      }
    }
  }

  /** The items before a position, the last one first. Do not change the list meanwhile. */
  *before(position: P): Generator<T> {
    for (let at = Math.min(this.pieceFor(position), this.pieces.length - 1); at >= 0; at--) {
      const piece = this.pieces[at] as T[];
      for (let place = this.placeIn(piece, position) - 1; place >= 0; place--) yield piece[place] as T;
    }
  }

  /** The first piece whose last item does not come before this one; as many as there are pieces: none. */
  private pieceFor(position: P): number {
    return firstIndex(this.pieces.length, (at) => this.compare((this.pieces[at] as T[]).at(-1) as T, position) >= 0);
  }

  private placeIn(piece: readonly T[], position: P): number {
    return firstIndex(piece.length, (at) => this.compare(piece[at] as T, position) >= 0);
  }
}
