/** What handler Workers, and workers that pull, announce about job types. */
import { writeMeta } from '../../durable/sql';
import type { AnnouncedType } from '../../job/record';

/** Remembered types of workers that pull, and their characters in all; the oldest are dropped first. */
const MAX_PULLED = 1_000;
const MAX_PULLED_CHARS = 256 * 1024;

/** Minimum interval between changes when workers contradict each other, ms: each change is a row. */
const CHANGE_EVERY_MS = 10_000;

export class AnnouncedTypes {
  pushed: ReadonlyMap<string, AnnouncedType> = new Map();
  private pulled: ReadonlyMap<string, AnnouncedType> = new Map();
  private changedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly sql: SqlStorage) {}

  load(meta: ReadonlyMap<string, unknown>): void {
    this.pushed = byType((meta.get('announced') ?? []) as AnnouncedType[]);
    this.pulled = byType((meta.get('announced_pulled') ?? []) as AnnouncedType[]);
  }

  *[Symbol.iterator](): Iterator<AnnouncedType> {
    yield* this.pushed.values();
    yield* this.pulled.values();
  }

  of(type: string): AnnouncedType | undefined {
    const { pushed, pulled } = this;
    return pushed.get(type) ?? pushed.get('*') ?? pulled.get(type) ?? pulled.get('*');
  }

  setPushed(types: ReadonlyMap<string, AnnouncedType>): void {
    const before = JSON.stringify([...this.pushed.values()]);
    this.pushed = types;
    const after = [...types.values()];
    if (JSON.stringify(after) !== before) writeMeta(this.sql, 'announced', after);
  }

  /**
   * A pull worker asks for jobs; its settings are kept for later. @param types absent: any
   * @param settings by type; a type without any uses those of the queue
   */
  setPulled(types: readonly string[] | undefined, settings: readonly AnnouncedType[], now: number): void {
    // What is taken by the chunk is each worker's own affair.
    const entries = byType(settings.map(({ batch: _, ...entry }) => entry));
    const catchAll = entries.get('*');
    const next = (type: string): AnnouncedType | undefined => {
      const entry = entries.get(type);
      // A type without settings still gets an entry, so that those of a catch-all do not apply to it.
      return entry && (hasSettings(entry) || (catchAll && hasSettings(catchAll))) ? entry : undefined;
    };
    const changed = [...(types ?? entries.keys())].filter((type) => !isSame(next(type), this.pulled.get(type)));
    if (changed.length === 0 || Math.abs(now - this.changedAt) < CHANGE_EVERY_MS) return;
    const pulled = new Map(this.pulled);
    for (const type of changed) {
      const entry = next(type);
      pulled.delete(type);
      if (entry) pulled.set(type, entry);
    }
    let chars = JSON.stringify([...pulled.values()]).length;
    for (const [type, entry] of pulled) {
      if (pulled.size <= MAX_PULLED && chars <= MAX_PULLED_CHARS) break;
      chars -= JSON.stringify(entry).length + 1;
      pulled.delete(type);
    }
    writeMeta(this.sql, 'announced_pulled', [...pulled.values()]);
    this.pulled = pulled;
    this.changedAt = now;
  }
}

const byType = (entries: readonly AnnouncedType[]) => new Map(entries.map((entry) => [entry.type, entry]));

const hasSettings = ({ retry, max_attempts }: AnnouncedType) => (retry ?? max_attempts) !== undefined;

/** Both are read from JSON by the same reader. */
const isSame = (one: AnnouncedType | undefined, other: AnnouncedType | undefined) =>
  one === other || JSON.stringify(one) === JSON.stringify(other);
