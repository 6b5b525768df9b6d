/** The budget of one transaction. A loop that uses it up stops where the next turn can continue, and asks for that. */
import type { Sizes } from './sizes';

export class Turn {
  /** Things changed so far, characters of these beside what was written, and rows read. */
  readonly used = { changes: 0, chars: 0, looks: 0 };
  private workAtStart = 0;

  /** @param written counts characters of rows */
  constructor(
    private readonly sizes: Pick<Sizes, 'turnChanges' | 'turnChars' | 'turnLooks'>,
    private readonly written: { readonly work: number },
  ) {}

  begin(): void {
    Object.assign(this.used, { changes: 0, chars: 0, looks: 0 });
    this.workAtStart = this.written.work;
  }

  /** Things that may still be changed; at least one, so that nothing stands still. */
  get left(): number {
    return Math.max(1, this.sizes.turnChanges - this.used.changes);
  }

  /** The part of {@link left} for one of several duties: the others follow in the same transaction. */
  get share(): number {
    return Math.ceil(this.left / 2);
  }

  get isSpent(): boolean {
    const { used, sizes, written } = this;
    const chars = used.chars + written.work - this.workAtStart;
    return used.changes >= sizes.turnChanges || chars >= sizes.turnChars || used.looks >= sizes.turnLooks;
  }

  /** The first of these, at least one, until as many as `most` are changed or the turn is spent. */
  *draw<T>(things: Iterable<T>, most = this.left): Generator<T> {
    let drawn = 0;
    for (const thing of things) {
      if (drawn > 0 && (drawn >= most || this.isSpent)) return;
      drawn++;
      this.used.changes++;
      yield thing;
    }
  }

  /** Notes what was done without {@link draw}. */
  spend({ changes = 0, chars = 0, looks = 0 }: Partial<Turn['used']>): void {
    this.used.changes += changes;
    this.used.chars += chars;
    this.used.looks += looks;
  }
}
