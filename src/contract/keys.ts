/** API keys made at run time. */
import type { Role, Scope } from '../access/access';
import type { Bounds } from '../job/bounds';
import type { Duration } from '../job/wire';
import type { Also } from '../ojs/names';
import type { CursorQuery, Page, Time } from './common';
import { del, get, patch, post } from './route';

/** What a key is bound to: each a list of names, or of beginnings followed by `*`. Absent members bind nothing. */
export interface KeyBounds extends Bounds {}

/** A key, without its secret. */
export interface ApiKey extends KeyBounds {
  id: string;
  name: string;
  /** `custom`: a set of scopes other than the roles. */
  role: Role;
  scopes: readonly Scope[];
  /** Jobs that it may enqueue into each queue; absent: any number. */
  rate?: string;
  created_at: Time;
  /** The name or hint of the key that made it; null: none was asked for. */
  created_by: string | null;
  /** Null: it does not expire. */
  expires_at: Time | null;
  /** Its last use, exact to ten minutes; null: it was not used. */
  used_at: Time | null;
  /** Until when the last replaced secret works; absent: none does. */
  former_until?: Time;
}

/** A key with its secret, which is not shown again. */
export interface ApiKeyCreated extends ApiKey {
  /** Send it as `Authorization: Bearer`. */
  key: string;
}

export interface ApiKeyList extends Also<'ApiKeyList', Page<ApiKey>> {}

/** Name, end, rate and bounds of a key. */
export interface ApiKeyChange extends KeyBounds {
  name?: string;
  /** Jobs that it may enqueue into each queue: `600/m`, or per `s`, `h`, `d`. */
  rate?: string;
  /** RFC 3339, or a duration from now. */
  expires_at?: string;
}

/** A new key. It gets at most what its maker has. */
export interface ApiKeyRequest extends ApiKeyChange {
  /** For humans, and for the audit log. */
  name: string;
  role?: Exclude<Role, 'custom'>;
  /** A key with `role` and `scopes` gets both. */
  scopes?: Scope[];
}

/** How long the present secret works after it is replaced. */
export interface RotateRequest {
  /** Default: it ends now. At most 30 days. */
  overlap?: Duration;
}

const KEYS = '/keys';
const write = (verb: string) => ({ scope: 'admin:keys', audit: `key.${verb}` }) as const;

/** Below `/ojs/v1/admin`. */
export const keys = {
  /** Lists the keys made at run time, oldest first. */
  list: get<{ query: CursorQuery; 200: ApiKeyList }>(KEYS, { scope: 'admin:keys' }),
  /** Creates a key. Its secret is in this answer, and never again. */
  create: post<{ body: ApiKeyRequest; 201: ApiKeyCreated; errors: 403 | 409 }>(KEYS, write('create')),
  /** Shows a key. */
  show: get<{ 200: ApiKey; errors: 404 }>(`${KEYS}/:id`, { scope: 'admin:keys' }),
  /** Narrows a key: an earlier end, a lower rate, fewer queues, types or groups. */
  change: patch<{ body: ApiKeyChange; 200: ApiKey; errors: 404 | 409 }>(`${KEYS}/:id`, write('change')),
  /** Revokes a key. */
  remove: del<{ 204: null; errors: 404 }>(`${KEYS}/:id`, write('revoke')),
  /** Replaces the secret of a key. The new one is in this answer, and never again. */
  rotate: post<{ body: RotateRequest; 200: ApiKeyCreated; errors: 403 | 404 | 409 }>(
    `${KEYS}/:id/rotate`,
    write('rotate'),
  ),
};
