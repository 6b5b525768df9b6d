/** A chunked handler takes many jobs of a type in one call: a full chunk, or fewer once the oldest waited enough. */
import { describe, described, inPolicy, type Reader, readInteger, readObject, readWord } from './envelope/fields';
import { notInPolicy, readMembers, required } from './envelope/members';
import { outcomeOf } from './errors';

/** How the jobs of a type, or of all types of a handler, are gathered. */
export interface ChunkSettings {
  /** Jobs in a call at most. */
  size: number;
  /** How long the oldest of them may wait for others, ms. */
  wait_ms: number;
  /** Jobs in a call have one group. Absent: they may have several. */
  by?: 'group';
}

/** The bounds of a chunk: jobs, and how long the oldest may wait, ms. */
export const CHUNK_BOUNDS = { size: 1_000, waitMs: 3_600_000 } as const;

/** Bytes of the jobs in a chunk at most, unless a single one is larger. */
export const MAX_CHUNK_BYTES = 4 * 1024 * 1024;

const readSettings = readMembers(
  {
    size: required(readInteger(1, CHUNK_BOUNDS.size)),
    wait_ms: required(readInteger(0, CHUNK_BOUNDS.waitMs)),
    by: readWord(['group']),
  },
  notInPolicy,
);
const readSettingsInPolicy = inPolicy(readSettings);

/** Reads how jobs are gathered. @throws {ApiError} 400 unless it is an object; 422 naming the member that is wrong */
export const readChunk: Reader<ChunkSettings> = described(
  () => describe(readSettings),
  (value, field) => readSettingsInPolicy(readObject(value, field), field),
);

/** The settings, if they can be. A handler Worker that says something else gets its jobs one by one. */
export function chunkIn(value: unknown): ChunkSettings | undefined {
  const read = outcomeOf(() => readSettings(value, 'batch'));
  return read.ok ? read.value : undefined;
}

/** How a worker that pulls takes jobs of a type by the chunk; `*`: of all types that are not named. */
export interface PulledChunk extends ChunkSettings {
  type: string;
}

/** Which jobs a worker that pulls takes by the chunk. */
export interface PulledChunks {
  chunked: readonly PulledChunk[];
  /** The types that its handlers take one by one, where it chunks all others. */
  singles: readonly string[];
}

/** What a worker takes by the chunk; undefined: nothing. @param handlers what it says of its handlers */
export function chunksOf(
  handlers: readonly { type: string; batch?: ChunkSettings }[] | undefined,
): PulledChunks | undefined {
  const chunked = handlers?.flatMap(({ type, batch }) => (batch ? [{ type, ...batch }] : [])) ?? [];
  if (chunked.length === 0) return undefined;
  const takesRest = chunked.some(({ type }) => type === '*');
  const singles = takesRest ? (handlers ?? []).flatMap(({ type, batch }) => (batch ? [] : [type])) : [];
  return { chunked, singles };
}

/** How a worker gathers jobs of a type; undefined: it takes them one by one. */
export function chunkFor({ chunked, singles }: PulledChunks, type: string): ChunkSettings | undefined {
  const own = chunked.find((entry) => entry.type === type);
  if (own || singles.includes(type)) return own;
  return chunked.find((entry) => entry.type === '*');
}

export function callsFor(jobs: readonly { record: { chunk?: { id: string } } }[]): number {
  const chunks = new Set<string>();
  let singles = 0;
  for (const { record } of jobs) {
    if (record.chunk) chunks.add(record.chunk.id);
    else singles++;
  }
  return singles + chunks.size;
}
