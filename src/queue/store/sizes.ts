/** Bounds of waiting jobs in memory and of the work of a transaction; one shared object, which tests can shrink. */
export const SIZES = {
  /** Entries in memory of all consumers together. An entry takes about 24 bytes. */
  memory: 1_000_000,
  /** Entries that each part of a consumer's memory may have, however many the others have. */
  memoryEach: 20_000,
  /** Entries of one consumer and priority. A row of the line that follows waits until some of them are taken. */
  entries: 200_000,
  /** Ready jobs of quiet groups that are read ahead. They come first, so no others need be known. */
  quiet: 4_000,
  /** What one selection reads ahead: jobs, blocks, and jobs with a row of their own. */
  ahead: 20_000,
  aheadBlocks: 64,
  aheadRows: 256,
  /** Rows that one selection reads, and characters of their bodies. One that reaches them is unfinished. */
  read: 4_096,
  readChars: 32 * 1024 * 1024,
  /** Things that one {@link Turn} changes, characters of these, and rows that its selections read. */
  turnChanges: 500,
  turnChars: 8 * 1024 * 1024,
  turnLooks: 16_384,
  /** Jobs that have begun and wait to continue, in memory: 7 MB. */
  holders: 50_000,
  /** Jobs and lanes that may start and that one consumer gathers into chunks. Beyond, lanes start early. */
  chunkJobs: 50_000,
  chunkLanes: 10_000,
  /** Rows of starts of groups, and characters in them, before they are joined. */
  startRows: 2_000,
  startChars: 8 * 1024 * 1024,
} as const;

export type Sizes = Record<keyof typeof SIZES, number>;

/** The memory of all consumers of an object, in entries. */
export class MemoryBudget {
  /** @param held entries of all of them */
  constructor(
    readonly sizes: Readonly<Sizes> = SIZES,
    private readonly held = () => 0,
  ) {}

  /** Entries that a part of it may have in all. @param own those that it has */
  roomFor(own: number): number {
    const { memory, memoryEach } = this.sizes;
    return Math.max(memoryEach, memory - Math.max(0, this.held() - own));
  }
}

/** Of a consumer that is asked only once. */
export const UNSHARED = new MemoryBudget();

/** The budget of one transaction. A loop that uses it up stops where the next turn can continue, and asks for that. */
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
