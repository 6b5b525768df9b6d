/** What a page has loaded. It loads once and when its dependencies change; nothing here repeats by itself. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { type ApiFailure, api, asFailure, isAbort } from './api';
import type { Query } from './base';

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

/**
 * Loads something, and aborts when the page is left. @param load gets a signal for its requests @param deps as
 * `useEffect`
 */
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
export function useGet<T>(path: string, query: Query = {}, version?: unknown): Resource<T> {
  return useResource((signal) => api.get<T>(path, query, signal), [path, JSON.stringify(query), version]);
}
