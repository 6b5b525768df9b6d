/** Who asks, and the login of browsers. */
import type { Role, Scope } from '../access/access';
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
  /** How the caller is known; absent: no key is asked for. */
  via?: 'key' | 'login';
  /** The id of a key made at run time. */
  key_id?: string;
  /** Who has logged in, as the identity provider names them. */
  subject?: string;
  /** What the caller may see; absent: everything. */
  bounds?: Bounds;
  /** The server hides parts of what jobs carry from this key. */
  redacts: boolean;
}

/** A key, for a cookie that no script can read. */
export interface Login {
  key: string;
}

/** What the identity provider adds to the address. */
interface Callback {
  state?: string;
  code?: string;
  error?: string;
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
  /** Sends a browser to the identity provider. `return_to`: the page of the dashboard that it opens afterwards. */
  beginLogin: get<{ query: { return_to?: string }; 302: null; errors: 404 }>('/session/login', { scope: 'public' }),
  /** Where the identity provider sends the browser back to: begins its session. */
  endLogin: get<{ query: Callback; 302: null; errors: 404 }>('/session/callback', { scope: 'public' }),
  /** Logs a browser out. */
  logOut: del<{ 204: null; errors: 403 }>('/session', { ...DATA, scope: 'public' }),
};
