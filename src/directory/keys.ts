/** API keys made at run time: a row each, and in memory. A revoked key leaves no row. */
import { changedKey, type KeyChange, type KeyRecord, rotatedKey, type StoredKey } from '../access/keys';
import type { Schema } from '../durable/schema';
import { conflict, notFound } from '../job/errors';

/** Keys of a deployment, and characters of all of them: each isolate holds the list. */
const MAX_KEYS = 1_000;
const MAX_CHARS = 1_048_576;

/** A use is written at most this often for each key, ms. */
const USED_EVERY_MS = 600_000;

type Row = { id: string; hash: string; data: string; used_at: number | null };

/** The list of keys, as an isolate holds it. */
export interface KeyList {
  /** Changes with each change of the list. */
  version: string;
  /** Absent: the caller has this version. */
  keys?: KeyRecord[];
}

export class KeyStore {
  private known: Map<string, KeyRecord> | undefined;
  /** Ends with this object's memory, so that none need be stored. */
  private version = crypto.randomUUID();

  constructor(private readonly tables: Schema) {}

  /** The oldest first. */
  all(): KeyRecord[] {
    return [...this.load().values()].sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
  }

  /** The list, unless the caller has this version. @param used hashes of keys that were used: a row each, in 10 min */
  current(version: string, used: readonly string[], now: number): KeyList {
    const hashes = new Set(used);
    for (const key of hashes.size > 0 ? this.load().values() : []) {
      const isUsed = [key, ...(key.former ?? [])].some(({ hash }) => hashes.has(hash));
      if (isUsed && now - (key.used_at ?? Number.NEGATIVE_INFINITY) >= USED_EVERY_MS) {
        this.tables.rows('UPDATE keys SET used_at = ? WHERE id = ?', now, key.id);
        key.used_at = now;
      }
    }
    return version === this.version ? { version } : { version: this.version, keys: this.all() };
  }

  /** @throws {ApiError} 409 when there are too many */
  create(key: StoredKey, now: number): KeyRecord {
    if (this.load().has(key.id)) throw conflict('There is a key with this id.', { id: key.id });
    const all = this.all();
    const expired = all.length < MAX_KEYS ? [] : all.filter(({ expires_at: end = now }) => end < now);
    for (const { id } of expired) this.revoke(id);
    return this.write(key);
  }

  /** @throws {ApiError} 404; 400 for more than it had */
  change(id: string, change: KeyChange): KeyRecord {
    return this.write(changedKey(this.must(id), change));
  }

  /** @throws {ApiError} 404, 409 */
  rotate(id: string, hash: string, overlap: number, now: number): KeyRecord {
    return this.write(rotatedKey(this.must(id), hash, overlap, now));
  }

  /** @returns whether there was one */
  revoke(id: string): boolean {
    if (!this.load().has(id)) return false;
    this.tables.rows('DELETE FROM keys WHERE id = ?', id);
    this.load().delete(id);
    this.version = crypto.randomUUID();
    return true;
  }

  find(id: string): KeyRecord | undefined {
    return this.load().get(id);
  }

  private must(id: string): KeyRecord {
    const key = this.find(id);
    if (!key) throw notFound('key', id, 'GET /ojs/v1/admin/keys lists all keys.');
    return key;
  }

  private write(key: KeyRecord): KeyRecord {
    const others = this.all().filter(({ id }) => id !== key.id);
    const { id, hash, used_at = null, ...rest } = key;
    const data = JSON.stringify(rest);
    if (others.length >= MAX_KEYS || JSON.stringify(others).length + data.length > MAX_CHARS) {
      const most = { max_keys: MAX_KEYS, max_characters: MAX_CHARS };
      throw conflict('The maximum number of keys, or their maximum size, is reached.', most, 'Revoke unused keys.');
    }
    this.tables.put('keys', { id, hash, data, used_at });
    this.load().set(id, key);
    this.version = crypto.randomUUID();
    return key;
  }

  private load(): Map<string, KeyRecord> {
    this.known ??= new Map(
      this.tables
        .rows<Row>('SELECT id, hash, data, used_at FROM keys')
        .map(({ id, hash, data, used_at }) => [
          id,
          { ...(JSON.parse(data) as KeyRecord), id, hash, ...(used_at !== null && { used_at }) },
        ]),
    );
    return this.known;
  }
}
