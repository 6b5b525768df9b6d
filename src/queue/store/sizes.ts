/**
 * Bounds of what an object keeps in memory of its waiting jobs, and of what one transaction reads. One object holds all
 * of them and is shared by everything that reads ahead, so tests can play them small.
 */
export interface Sizes {
  /** Entries in memory of all consumers together. An entry takes about 24 bytes. */
  memory: number;
  /** Entries that one consumer may have, however many the others have. */
  memoryEach: number;
  /** Jobs that one selection reads ahead: in all, with rows of their own, and blocks of jobs. */
  ahead: number;
  aheadRows: number;
  aheadBlocks: number;
  /** Rows that one selection looks at, and characters of their bodies. */
  looks: number;
  chars: number;
  /** Rows of starts of groups, and characters in them, before they are joined. */
  startRows: number;
  startChars: number;
}

export const SIZES: Readonly<Sizes> = {
  memory: 1_000_000,
  memoryEach: 20_000,
  ahead: 20_000,
  aheadRows: 256,
  aheadBlocks: 64,
  looks: 4_096,
  chars: 32 * 1024 * 1024,
  startRows: 2_000,
  startChars: 8 * 1024 * 1024,
};
