/** Who asks, and the login of browsers. */
import type { Role, Scope } from '../job/access';
import type { Bounds } from '../job/bounds';
import { DATA, del, get, post } from './route';

/** Who asks, and what they may do. */
export interface Session {
  authenticated: true;
  /** No key is configured: everybody who reaches this server may do everything. */
  open: boolean;
  /** The name of the key, where it has one. */
  name: string | null;
  /** `custom`: a set of scopes other than the roles. */
  role: Role;
  scopes: readonly Scope[];
  /** Of a key made at run time: its id, and what it may see; absent: everything. */
  key_id?: string;
  bounds?: Bounds;
  /** The server hides parts of what jobs carry from this key. */
  redacts: boolean;
}

/** A key, for a cookie that no script can read. */
export interface Login {
  key: string;
}

/** Below `/ojs/v1/admin`. */
export const sessions = {
  /** Shows the caller and its scopes. */
  show: get<{ 200: Session }>('/session', { scope: 'key', bound: 'any' }),
  /** Logs a browser in: the key goes into a cookie that no script can read. */
  logIn: post<{ body: Login; 200: Session; errors: 401 | 403 | 429 }>('/session', {
    ...DATA,
    scope: 'public',
    secrets: { key: 'whole' },
  }),
  /** Logs a browser out. */
  logOut: del<{ 204: null; errors: 403 }>('/session', { ...DATA, scope: 'public' }),
};
