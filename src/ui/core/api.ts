/** Calls of the API, and who makes them. Errors are {@link ApiFailure}; without a right key the login page opens. */
import { computed, signal } from '@preact/signals';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { Session } from '../../contract/session';
import { parseExact, stringifyExact } from './exact';
import { API, type Query, writeQuery } from './router';

/** A refusal by the server, or a failure to reach it (`status` 0). */
export class ApiFailure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
    readonly hint?: string,
    readonly requestId?: string,
  ) {
    super(message);
  }
}

/** True once the server has asked for a key. */
export const needsLogin = signal(false);

/** Where people log in with an account, as the server says when it asks for a key; undefined: nowhere. */
export const accountLogin = signal<URL | undefined>(undefined);

interface CallOptions {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

/** @param path below `/ojs/v1/`, without a slash before it: `admin/queues` */
async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const url = new URL(path, API);
  writeQuery(url, options.query ?? {});
  const init: RequestInit = { method, headers: { Accept: 'application/json', ...options.headers } };
  if (options.signal) init.signal = options.signal;
  if (options.body !== undefined) {
    init.body = stringifyExact(options.body, 0);
    init.headers = { ...init.headers, 'Content-Type': 'application/json' };
  }
  const response = await fetch(url, init).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiFailure(
      0,
      'unreachable',
      'The server cannot be reached.',
      {},
      'Check the connection, then try again.',
    );
  });
  const body = read(await response.text());
  if (!response.ok) throw failureOf(response.status, body);
  return body as T;
}

export const api = {
  get: <T>(path: string, query?: Query, signal?: AbortSignal) =>
    call<T>('GET', path, { ...(query && { query }), ...(signal && { signal }) }),
  post: <T>(path: string, content: unknown = {}, options?: CallOptions) =>
    call<T>('POST', path, { ...options, body: content }),
  put: <T>(path: string, content: unknown) => call<T>('PUT', path, { body: content }),
  patch: <T>(path: string, content: unknown) => call<T>('PATCH', path, { body: content }),
  del: <T>(path: string, options?: CallOptions) => call<T>('DELETE', path, options),
};

function read(text: string): unknown {
  if (text === '') return undefined;
  try {
    return parseExact(text);
  } catch {
    return text;
  }
}

function failureOf(status: number, answer: unknown): ApiFailure {
  const { error } = (answer ?? {}) as { error?: Record<string, unknown> };
  const text = (name: string) => (typeof error?.[name] === 'string' ? (error[name] as string) : undefined);
  const details = (error?.details ?? {}) as Readonly<Record<string, unknown>>;
  if (status === 401) needsLogin.value = true;
  if (status === 401 && details.login) accountLogin.value = new URL('admin/session/login', API);
  return new ApiFailure(
    status,
    text('code') ?? 'failed',
    text('message') ?? `The server answered ${status}.`,
    details,
    text('hint'),
    text('request_id'),
  );
}

export const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === 'AbortError';

export function asFailure(error: unknown): ApiFailure {
  if (error instanceof ApiFailure) return error;
  return new ApiFailure(0, 'defect', error instanceof Error ? error.message : String(error));
}

/** What a page has loaded. It loads once and when its dependencies change; nothing here repeats by itself. */
export interface Resource<T> {
  /** Stays while it is reloaded, so that nothing jumps. */
  data: T | undefined;
  error: ApiFailure | undefined;
  loading: boolean;
  /** Reloads. Calls while it loads are joined into one more load. */
  reload: () => void;
  /** Changes what is held, for example after an event. */
  update: (change: (data: T) => T) => void;
}

/** Loads something, and aborts when the page is left. @param load gets a signal @param deps as of `useEffect` */
export function useResource<T>(load: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[]): Resource<T> {
  const [state, setState] = useState<{ data?: T; error?: ApiFailure; loading: boolean }>({ loading: true });
  const [round, setRound] = useState(0);
  const busy = useRef(false);
  const again = useRef(false);

  useEffect(() => {
    const abort = new AbortController();
    busy.current = true;
    setState((held) => ({ ...held, loading: true }));
    const settle = (next: { data?: T; error?: ApiFailure }) => {
      busy.current = false;
      setState((held) => ({
        ...(next.error && held.data !== undefined && { data: held.data }),
        ...next,
        loading: false,
      }));
      if (again.current) {
        again.current = false;
        setRound((count) => count + 1);
      }
    };
    load(abort.signal).then(
      (data) => abort.signal.aborted || settle({ data }),
      (error) => abort.signal.aborted || isAbort(error) || settle({ error: asFailure(error) }),
    );
    return () => abort.abort();
  }, [...deps, round]);

  const reload = useCallback(() => {
    if (busy.current) again.current = true;
    else setRound((count) => count + 1);
  }, []);
  const update = useCallback((change: (data: T) => T) => {
    setState((held) => (held.data === undefined ? held : { ...held, data: change(held.data) }));
  }, []);
  return { data: state.data, error: state.error, loading: state.loading, reload, update };
}

/** `GET` of a path, again when path or query changes. @param version reloads when it changes, e.g. after events */
export const useGet = <T>(path: string, query: Query = {}, version?: unknown): Resource<T> =>
  useResource((signal) => api.get<T>(path, query, signal), [path, JSON.stringify(query), version]);

/** Who is signed in; undefined until the server has answered. */
export const session = signal<Session | undefined>(undefined);

const scopes = computed(() => new Set<string>(session.value?.scopes ?? []));

/** May this key do what needs the scope? If not, its actions are hidden: `can('admin:write') && <button…>`. */
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
