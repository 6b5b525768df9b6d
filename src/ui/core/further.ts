/** What a search finds beyond what one answer looks at: asked for piece by piece, to be shown below the first. */
import { useEffect, useState } from 'preact/hooks';
import { failed } from './dialogs';

/** An answer of a search that reads a limited number at a time. */
export interface Piece<T> {
  items: readonly T[];
  searched?: number;
  cursor?: string | null;
}

interface FurtherOptions<T> {
  first: Piece<T>;
  /** What is searched, from the URL: when it changes, what was found is forgotten. */
  place: () => string;
  ask: (cursor: string | null) => Promise<Piece<T>>;
  join: (held: readonly T[], next: readonly T[]) => readonly T[];
}

export type Further = ReturnType<typeof useFurther>;

export function useFurther<T>({ first, place, ask, join }: FurtherOptions<T>) {
  const [found, setFound] = useState<Required<Piece<T>>>();
  const [busy, setBusy] = useState(false);
  const here = place();
  useEffect(() => setFound(undefined), [here]);
  const { cursor = null } = found ?? first;
  const look = async () => {
    setBusy(true);
    try {
      const next = await ask(cursor);
      if (place() !== here) return;
      setFound((held) => ({
        items: join(held?.items ?? [], next.items),
        searched: (held?.searched ?? 0) + (next.searched ?? 0),
        cursor: next.cursor ?? null,
      }));
    } catch (error) {
      failed(error);
    } finally {
      setBusy(false);
    }
  };
  return { items: found?.items ?? [], searched: found?.searched ?? 0, more: cursor !== null, busy, look };
}
