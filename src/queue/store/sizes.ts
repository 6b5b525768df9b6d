/** Bounds of waiting jobs in memory and of reads per transaction; one shared object, which tests can shrink. */
export interface Sizes {
  /** Entries in memory of all consumers together. An entry takes about 24 bytes. */
  memory: number;
  /** Entries that one consumer may have, however many the others have. */
  memoryEach: number;
  /** Jobs and lanes that may start and that one consumer gathers into chunks. Beyond, lanes start early. */
  chunkJobs: number;
  chunkLanes: number;
  /** Rows of starts of groups, and characters in them, before they are joined. */
  startRows: number;
  startChars: number;
}

export const SIZES: Readonly<Sizes> = {
  memory: 1_000_000,
  memoryEach: 20_000,
  chunkJobs: 50_000,
  chunkLanes: 10_000,
  startRows: 2_000,
  startChars: 8 * 1024 * 1024,
};
