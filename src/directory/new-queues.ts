/** Counts the queues that each key creates, by the day. */
import type { Schema } from '../durable/schema';
import { type ApiError, refusal } from '../job/errors';

const DAY_MS = 86_400_000;

const FACT = 'new_queues';

/** Days since 1970, and how many queues each key has created on that day. */
interface Counted {
  day: number;
  by: Record<string, number>;
}

export class NewQueues {
  /** Names that were counted in this life of the object, and may not exist yet. */
  private readonly counted = new Set<string>();

  constructor(private readonly tables: Schema) {}

  /** May this key create these queues? One row if any is new. @param most per key and day @throws {ApiError} 429 */
  admit(by: string, names: readonly string[], most: number, now: number): void {
    const existing = 'SELECT name FROM queues WHERE name IN (SELECT value FROM json_each(?))';
    const known = new Set(this.tables.rows<{ name: string }>(existing, JSON.stringify(names)).map(({ name }) => name));
    const fresh = names.filter((name) => !known.has(name) && !this.counted.has(name));
    if (fresh.length === 0) return;
    const day = Math.floor(now / DAY_MS);
    const fact = this.tables.fact<Counted>(FACT);
    const today = fact?.day === day ? fact.by : {};
    const created = Object.hasOwn(today, by) ? (today[by] as number) : 0;
    if (created + fresh.length > most) throw tooMany(created, most, (day + 1) * DAY_MS - now);
    this.tables.writeFact(FACT, { day, by: { ...today, [by]: created + fresh.length } } satisfies Counted);
    if (this.counted.size > most) this.counted.clear();
    for (const name of fresh) this.counted.add(name);
  }

  forget(): void {
    this.counted.clear();
  }
}

function tooMany(created: number, most: number, ms: number): ApiError {
  return refusal(429, 'rate_limited', `This key has created ${created} queues today, and may create ${most} a day.`, {
    retryable: true,
    details: { created, max_new_queues: most },
    hint: 'Use queues that exist, or a key with admin:write. The variable MAX_NEW_QUEUES sets the bound.',
    headers: { 'Retry-After': String(Math.ceil(ms / 1000)) },
  });
}
