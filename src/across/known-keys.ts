/**
 * Keys made at run time, as an isolate knows them. While keys are used it asks the directory for the list every
 * {@link LIST_MS}; for a key that it does not know earlier. Other requests meanwhile use the last list.
 */
import { endOf, hashOf, type KeyRecord, keyIdIn } from '../access/keys';
import type { Env } from '../config';
import { isWithin } from '../durable/backoff';
import { perDeployment } from '../durable/memory';
import { requestTimer } from '../durable/timers';
import { waitAtMost } from '../durable/wait';
import { unavailable } from '../job/errors';
import { directoryObject } from '../rpc/stubs';

/** The age at which the list is asked for again, ms. */
const LIST_MS = 30_000;
/** Minimum interval between requests that found a key unknown, or got no answer, ms. */
const AGAIN_MS = 5_000;
/** A list counts for this long without an answer of the directory, ms. */
const USABLE_MS = 600_000;

class KnownKeys {
  private version = '';
  private keys = new Map<string, KeyRecord>();
  /** When the last list was asked for that arrived; and when the last one was, epoch ms. */
  private listedAt = Number.NEGATIVE_INFINITY;
  private askedAt = Number.NEGATIVE_INFINITY;
  private failed = false;
  /** The question under way. */
  private asking: Promise<boolean> | undefined;
  /** Hashes of keys that were used since. */
  private used = new Set<string>();

  constructor(private readonly env: Env) {}

  /** The next request asks for the list. */
  forget(): void {
    this.listedAt = this.askedAt = Number.NEGATIVE_INFINITY;
    this.failed = false;
    this.asking = undefined;
  }

  /** The key with this id, and this hash unless that is undefined; undefined: none. @throws {ApiError} 503 */
  async find(id: string, hash: string | undefined, now: number): Promise<KnownKey | undefined> {
    if (hash !== undefined) this.used.add(hash);
    if (!isWithin(this.listedAt, LIST_MS, now)) await this.ask(now);
    let found = this.match(id, hash, now);
    if (!found && (await this.ask(now))) found = this.match(id, hash, now);
    if (hash !== undefined && !(found && found.end > now)) this.used.delete(hash);
    if (found || isWithin(this.listedAt, USABLE_MS, now)) return found;
    throw unavailable('Whether this key is valid cannot be known at the moment.', AGAIN_MS / 1_000);
  }

  private match(id: string, hash: string | undefined, now: number): KnownKey | undefined {
    const key = isWithin(this.listedAt, USABLE_MS, now) ? this.keys.get(id) : undefined;
    const end = key && endOf(key, hash ?? key.hash, now);
    return key && end !== undefined ? { ...key, end } : undefined;
  }

  /** @returns whether there is another answer now */
  private async ask(now: number): Promise<boolean> {
    const hasList = this.listedAt !== Number.NEGATIVE_INFINITY;
    if ((hasList || this.failed) && isWithin(this.askedAt, AGAIN_MS, now)) return false;
    if (this.asking) {
      // Its request may have been cancelled, and the question with it.
      await waitAtMost(requestTimer, AGAIN_MS, this.asking);
      if (!this.asking) return !this.failed;
    }
    const asking = this.question(now);
    this.asking = asking;
    const isAnswered = await asking;
    if (this.asking === asking) this.asking = undefined;
    return isAnswered;
  }

  private async question(now: number): Promise<boolean> {
    this.askedAt = now;
    const { used } = this;
    this.used = new Set();
    try {
      const { version, keys } = await directoryObject(this.env).keys(this.version, [...used]);
      if (keys) this.keys = new Map(keys.map((key) => [key.id, key]));
      this.version = version;
      this.listedAt = now;
      this.failed = false;
      return true;
    } catch (error) {
      console.error('tocsin: the list of keys cannot be read:', error);
      for (const hash of used) this.used.add(hash);
      this.failed = true;
      return false;
    }
  }
}

/** A key and the end of the secret that was presented, epoch ms or infinity; it may have passed. */
export type KnownKey = KeyRecord & { end: number };

const listOf = perDeployment((env: Env) => new KnownKeys(env));

/** The key in a text; undefined: it is none. Expired keys have an `end` in the past. @throws {ApiError} 503 */
export async function findKey(env: Env, text: string, now: number): Promise<(KnownKey & { hash: string }) | undefined> {
  const id = keyIdIn(text);
  if (id === undefined) return undefined;
  const hash = await hashOf(text);
  const found = await listOf(env).find(id, hash, now);
  return found && { ...found, hash };
}

/** The key with this id, if it works now. @param hash of its secret; default: any @throws {ApiError} 503 */
export async function keyWithId(env: Env, id: string, now: number, hash?: string): Promise<KnownKey | undefined> {
  const found = await listOf(env).find(id, hash, now);
  return found && found.end > now ? found : undefined;
}

/** The keys were changed by this isolate: it asks for them at the next use. */
export const forgetKeys = (env: Env): void => listOf(env).forget();
