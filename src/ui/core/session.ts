/** Who is signed in, with which scopes. Actions without their scope are hidden; the server refuses them anyway. */
import { computed, signal } from '@preact/signals';
import type { Session } from '../../contract/session';
import { ApiFailure, api, needsLogin } from './api';

/** Undefined until the server has answered. */
export const session = signal<Session | undefined>(undefined);

const scopes = computed(() => new Set<string>(session.value?.scopes ?? []));

/** May this key do what needs the scope? `can('admin:write') && <button…>` */
export const can = (scope: string): boolean => scopes.value.has(scope);

/** The option of curl that sends a key, where the server asks for one. */
export const curlKey = () => (session.value?.open ? '' : ' -H "Authorization: Bearer $TOCSIN_KEY"');

/** True for a text that is hidden from this key: no filter finds it. */
export const isHidden = (text: string) => text.startsWith('[redacted');

export async function loadSession(): Promise<void> {
  try {
    session.value = await api.get<Session>('admin/session');
    needsLogin.value = false;
  } catch (error) {
    // Then the login is shown.
    if (!(error instanceof ApiFailure && error.status === 401)) throw error;
  }
}

/** Trades a key for a cookie that scripts cannot read. @throws {ApiFailure} 401 when the key is not known */
export async function login(key: string): Promise<void> {
  session.value = await api.post<Session>('admin/session', { key });
  needsLogin.value = false;
}

export async function logout(): Promise<void> {
  await api.del('admin/session');
  session.value = undefined;
  needsLogin.value = true;
  // Says where people log in; behind a proxy they still are.
  await loadSession();
}
