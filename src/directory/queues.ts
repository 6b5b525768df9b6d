import type { Schema } from '../durable/schema';
import { type ApiError, refusal } from '../job/errors';
import { routeCandidate } from '../job/ids';
import {
  type BusiestQueues,
  type KnownQueue,
  MAX_QUEUES_AT_ONCE,
  type QueueListRequest,
  type QueuePage,
} from '../rpc/directory';

type Selected = { route: number; name: string; created_at: number };

/** Where the first page of queues begins: before all names. */
const FIRST = '';

export class QueueList {
  private counted: number | undefined;
  /** The oldest queues, once they were asked for: new ones do not change them. */
  private oldest: string[] | undefined;

  /** @param created called with a new queue, in the transaction that creates it */
  constructor(
    private readonly tables: Schema,
    private readonly created: (name: string) => void,
  ) {}

  /** The queue with this name and its number: given out now, if it has none. */
  numbered(name: string): KnownQueue {
    return this.tables.transaction(() => {
      const known = this.select('name = ?', name)[0];
      if (known) return known;
      for (let probe = 0; ; probe++) {
        const route = routeCandidate(name, probe);
        if (this.select('route = ?', route).length > 0) continue;
        const queue = { route, name, created_at: Date.now() };
        this.tables.put('queues', { ...queue, ids_listed: 1 });
        this.counted = undefined;
        if ((this.oldest?.length ?? 0) < MAX_QUEUES_AT_ONCE) this.oldest = undefined;
        this.created(name);
        return queue;
      }
    });
  }

  page({ after = FIRST, offset = 0, limit, part = '', names }: QueueListRequest): QueuePage {
    const meant = `instr(name, ?) > 0${names ? ' AND name IN (SELECT value FROM json_each(?))' : ''}`;
    const of = names ? [part, JSON.stringify(names)] : [part];
    const found = this.select(`${meant} AND name > ? ORDER BY name LIMIT ? OFFSET ?`, ...of, after, limit + 1, offset);
    const counted = () => this.tables.count(`SELECT count(*) AS n FROM queues WHERE ${meant}`, ...of);
    const total = part === '' && !names ? this.count() : counted();
    return { queues: found.slice(0, limit), total, more: found.length > limit };
  }

  /** Names that fit a pattern, each by a range of the index: of each pattern one more than may be asked at once. */
  within(patterns: readonly string[]): string[] {
    const found = patterns.flatMap((pattern) => {
      const start = pattern.replace(/\*$/, '');
      const end = start === pattern ? pattern : `${start}\u{10ffff}`;
      return this.select('name >= ? AND name <= ? ORDER BY name LIMIT ?', start, end, MAX_QUEUES_AT_ONCE + 1);
    });
    return [...new Set(found.map(({ name }) => name))];
  }

  /** As many as may be asked at once, of these, and then the oldest: so made-up names come last. */
  busiest(restless: readonly string[]): BusiestQueues {
    if (!this.tables.exist()) return { names: [], leftOut: 0 };
    const first = restless.slice(0, MAX_QUEUES_AT_ONCE);
    const known = this.select('name IN (SELECT value FROM json_each(?))', JSON.stringify(first));
    this.oldest ??= this.select('true ORDER BY created_at, name LIMIT ?', MAX_QUEUES_AT_ONCE).map(({ name }) => name);
    const names = [...new Set([...known.map(({ name }) => name), ...this.oldest])].slice(0, MAX_QUEUES_AT_ONCE);
    return { names, leftOut: this.count() - names.length };
  }

  resolve(routes: readonly number[]): KnownQueue[] {
    return this.select('route IN (SELECT value FROM json_each(?))', JSON.stringify(routes));
  }

  count(): number {
    if (!this.tables.exist()) return 0;
    this.counted ??= this.tables.count('SELECT count(*) AS n FROM queues');
    return this.counted;
  }

  /** Forgets a queue; not one of the same name that was created after `until`, epoch ms. */
  remove(name: string, until: number): void {
    this.tables.rows('DELETE FROM queues WHERE name = ? AND created_at <= ?', name, until);
    this.forget();
  }

  forget(): void {
    this.counted = undefined;
    this.oldest = undefined;
  }

  private select(where: string, ...bindings: (string | number)[]): KnownQueue[] {
    return this.tables.rows<Selected>(`SELECT route, name, created_at FROM queues WHERE ${where}`, ...bindings);
  }
}

const DAY_MS = 86_400_000;

const FACT = 'new_queues';

/** Days since 1970, and how many queues each key has created on that day. */
interface Counted {
  day: number;
  by: Record<string, number>;
}

/** Counts the queues that each key creates, by the day. */
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

const tooMany = (created: number, most: number, ms: number): ApiError =>
  refusal(429, 'rate_limited', `This key has created ${created} queues today, and may create ${most} a day.`, {
    retryable: true,
    details: { created, max_new_queues: most },
    hint: 'Use queues that exist, or a key with admin:write. The variable MAX_NEW_QUEUES sets the bound.',
    headers: { 'Retry-After': String(Math.ceil(ms / 1000)) },
  });
