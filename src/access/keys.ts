/** API keys made at run time: `toc_<id>_<secret>`. What requests say of them, and how they may change. */
import { type Bounds, readBounds, within } from '../job/bounds';
import { hexOf, sha256Of, unpaddedBase64UrlOf } from '../job/bytes';
import { defined, optional, readDuration, reader, readSome, readText, readWord } from '../job/envelope/fields';
import { type ApiError, conflict, invalidRequest } from '../job/errors';
import type { Quota } from '../job/limits/policy';
import { parseInstant } from '../job/time';
import { completed, ROLES, SCOPES, type Scope } from './access';
import { utf8Of } from './jwt';

/** What a key may do, and until when. */
export interface KeyMembers {
  name: string;
  scopes: readonly Scope[];
  /** Absent: every queue, type and group. */
  bounds?: Bounds;
  /** Jobs that it enqueues into each queue at most, such as `600/m`; absent: any number. */
  rate?: string;
  /** Epoch ms; absent: it does not expire. */
  expires_at?: number;
}

export interface StoredKey extends KeyMembers {
  id: string;
  /** SHA-256 of the whole key, in hexadecimal. */
  hash: string;
  /** Secrets that were replaced and still work, and until when, epoch ms. */
  former?: { hash: string; until: number }[];
  created_at: number;
  /** The name or hint of the key that made it. */
  created_by?: string;
}

/** A key with its last use, epoch ms, exact to ten minutes. */
export interface KeyRecord extends StoredKey {
  used_at?: number;
}

/** Replaced secrets of a key that work at a time. */
const MAX_FORMER = 10;
const MAX_OVERLAP_MS = 30 * 86_400_000;
const KEY = /^toc_([0-9A-Za-z]{8})_[\w-]{43}$/;
const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The id in a text of the form of a key; undefined: it has another form. */
export const keyIdIn = (text: string | undefined): string | undefined => KEY.exec(text ?? '')?.[1];

export const isKeyId = (text: string): boolean => /^[0-9A-Za-z]{8}$/.test(text);

/** A new key. @param id of the key whose secret is replaced; default: a new one */
export function newKey(id = newId()): { id: string; key: string } {
  return { id, key: `toc_${id}_${unpaddedBase64UrlOf(crypto.getRandomValues(new Uint8Array(32)))}` };
}

const newId = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => LETTERS[byte % LETTERS.length]).join('');

/** What is stored of a key: random bits of this number need no slow hash. */
export const hashOf = async (key: string): Promise<string> => hexOf(await sha256Of(key));

const isSame = (a: string, b: string) => crypto.subtle.timingSafeEqual(utf8Of(a), utf8Of(b));

/** Until when the secret with this hash works, epoch ms or infinity; undefined: it is not one of the key's now. */
export function endOf(key: StoredKey, hash: string, now: number): number | undefined {
  const secrets = [{ hash: key.hash, until: Number.POSITIVE_INFINITY }, ...(key.former ?? [])];
  const [found] = secrets.filter((one) => isSame(one.hash, hash) && one.until > now);
  return found && Math.min(found.until, key.expires_at ?? found.until);
}

const readKeyName = readText(
  (text) => text.trim() !== '' && text.length <= 100 && !/\p{Cc}/u.test(text),
  'must be a line of 1 to 100 characters',
);
const readRole = readWord(Object.keys(ROLES) as (keyof typeof ROLES)[]);
const readScopes = readSome(SCOPES.length, readWord(SCOPES));

const RATE = /^([1-9]\d{0,8})\/([smhd])$/;
const PERIOD_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const readRate = readText((text) => RATE.test(text), 'must be jobs a second, minute, hour or day: "600/m"');

/** The numbers in the rate of a key. */
export function quotaOf(rate: string): Quota {
  const [, limit, unit] = RATE.exec(rate) ?? [];
  return { limit: Number(limit), period_ms: PERIOD_MS[unit as keyof typeof PERIOD_MS] };
}

/** Does the rate allow no more than another one, at any time? Absent: any number. */
export function isSlower(rate: string | undefined, than: string | undefined): boolean {
  if (than === undefined) return true;
  if (rate === undefined) return false;
  const [own, other] = [quotaOf(rate), quotaOf(than)];
  return own.limit <= other.limit && own.period_ms >= other.period_ms;
}

function readExpiry(value: unknown, now: number): number {
  const read = reader(
    (given) => parseInstant(given, now),
    'must be an RFC 3339 time, or a duration from now such as "90d"',
  );
  const at = read(value, 'expires_at');
  if (at > now) return at;
  throw invalidRequest('expires_at', 'expires_at must be in the future.');
}

/** Scopes that give nothing by themselves, and those whose routes refuse keys with bounds. */
const USELESS: readonly Scope[] = ['data:reveal'];
const UNBOUND: readonly Scope[] = [...USELESS, 'metrics:read', 'admin:export', 'admin:keys'];

/** A key as a request describes it. @throws {ApiError} 400 */
export function readKey(given: Record<string, unknown>, now: number): KeyMembers {
  const name = readKeyName(given.name, 'name');
  const role = optional(given, 'role', readRole);
  const listed = optional(given, 'scopes', readScopes);
  if (!role && !listed) throw invalidRequest('role', 'A key needs role or scopes.');
  const scopes = completed([...(role ? ROLES[role] : []), ...(listed ?? [])]);
  const bounds = readBounds(given);
  const useless = bounds ? UNBOUND : USELESS;
  if (scopes.every((scope) => useless.includes(scope))) {
    const why = bounds ? 'routes of these scopes refuse keys with queues, types or groups' : 'add a scope that reads';
    throw invalidRequest('scopes', `This key could do nothing: ${why}.`);
  }
  const end = given.expires_at ?? undefined;
  const rate = optional(given, 'rate', readRate);
  return defined({ name, scopes, bounds, rate, expires_at: end === undefined ? end : readExpiry(end, now) });
}

export type KeyChange = Partial<Pick<KeyMembers, 'name' | 'bounds' | 'rate' | 'expires_at'>>;

/** @throws {ApiError} 400 */
export function readKeyChange(given: Record<string, unknown>, now: number): KeyChange {
  const end = given.expires_at ?? undefined;
  const expires_at = end === undefined ? end : readExpiry(end, now);
  const rate = optional(given, 'rate', readRate);
  return defined({ name: optional(given, 'name', readKeyName), bounds: readBounds(given), rate, expires_at });
}

const ONLY_NARROWS = 'A change only narrows a key; create another one that may do more.';

/** The key after a change: it never gets more than it had. @throws {ApiError} 400 */
export function changedKey(
  key: KeyRecord,
  { name = key.name, bounds, rate = key.rate, expires_at: end }: KeyChange,
): KeyRecord {
  for (const [field, patterns] of Object.entries(bounds ?? {}) as [keyof Bounds, string[]][]) {
    if (within({ [field]: patterns }, defined({ [field]: key.bounds?.[field] }))) continue;
    throw invalidRequest(field, `${field} must lie within those of the key. ${ONLY_NARROWS}`, { ...key.bounds });
  }
  if (end !== undefined && end > (key.expires_at ?? end)) {
    throw invalidRequest('expires_at', `expires_at must not be later than before. ${ONLY_NARROWS}`);
  }
  if (!isSlower(rate, key.rate)) throw invalidRequest('rate', `rate must not be above ${key.rate}. ${ONLY_NARROWS}`);
  return {
    ...key,
    name,
    ...defined({ rate }),
    ...(bounds && { bounds: { ...key.bounds, ...bounds } }),
    ...defined({ expires_at: end }),
  };
}

/** How long the secrets of a key work after they are replaced, ms. Default 0. @throws {ApiError} 400 */
export function readOverlap(given: Record<string, unknown>): number {
  const ms = optional(given, 'overlap', readDuration) ?? 0;
  if (ms <= MAX_OVERLAP_MS) return ms;
  throw invalidRequest('overlap', 'overlap must be at most 30 days.');
}

/** The key under another secret; all former ones end after `overlap` ms, or earlier. @throws {ApiError} 409 */
export function rotatedKey(key: KeyRecord, hash: string, overlap: number, now: number): KeyRecord {
  const { former: before = [], ...rest } = key;
  const last = { hash: key.hash, until: now + overlap };
  const former = [...before.map((one) => ({ ...one, until: Math.min(one.until, now + overlap) })), last].filter(
    ({ until }) => until > now,
  );
  if (former.length > MAX_FORMER) throw tooManyFormer();
  return { ...rest, hash, ...(former.length > 0 && { former }) };
}

const tooManyFormer = (): ApiError =>
  conflict(
    'Too many replaced secrets of this key still work.',
    { max_former: MAX_FORMER },
    'Rotate with a shorter overlap; "0s" ends them all now.',
  );
