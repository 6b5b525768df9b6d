/** What is announced about job types: by handler Workers that jobs are pushed to, and by workers that pull them. */
import { writeMeta } from '../../durable/sql';
import type { AnnouncedType } from '../../job/record';

/** Types of workers that pull that are remembered, and how long all of that may be, in characters; the oldest go first. */
const MAX_PULLED = 1_000;
const MAX_PULLED_CHARS = 256 * 1024;

/** Workers that say different things in turns change what is remembered no more often than this, ms: each time is a row. */
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

  /** All that is remembered. */
  *[Symbol.iterator](): Iterator<AnnouncedType> {
    yield* this.pushed.values();
    yield* this.pulled.values();
  }

  /** What holds for a type: where it is pushed, what that handler says; its own entry, else that of a catch-all. */
  of(type: string): AnnouncedType | undefined {
    const { pushed, pulled } = this;
    return pushed.get(type) ?? pushed.get('*') ?? pulled.get(type) ?? pulled.get('*');
  }

  /** Handler Workers announce this. */
  setPushed(types: ReadonlyMap<string, AnnouncedType>): void {
    const before = JSON.stringify([...this.pushed.values()]);
    this.pushed = types;
    const after = [...types.values()];
    if (JSON.stringify(after) !== before) writeMeta(this.sql, 'announced', after);
  }

  /**
   * A worker that pulls asks for jobs. It runs them later, or is gone by then: so what it says is kept.
   * @param types that it takes; absent: any, and then it speaks of those only that it names
   * @param said about them; one that is not named, or has no settings, goes by the queue's
   */
  hear(types: readonly string[] | undefined, said: readonly AnnouncedType[], now: number): void {
    const saying = byType(said);
    const catchAll = saying.get('*');
    const next = (type: string): AnnouncedType | undefined => {
      const entry = saying.get(type);
      // One that says nothing still keeps the settings of a catch-all away from its type.
      return entry && (saysAnything(entry) || (catchAll && saysAnything(catchAll))) ? entry : undefined;
    };
    const changed = [...(types ?? saying.keys())].filter((type) => !isSame(next(type), this.pulled.get(type)));
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

const saysAnything = ({ retry, max_attempts }: AnnouncedType) => (retry ?? max_attempts) !== undefined;

/** Both are read from JSON by the same reader. */
const isSame = (one: AnnouncedType | undefined, other: AnnouncedType | undefined) =>
  one === other || JSON.stringify(one) === JSON.stringify(other);
