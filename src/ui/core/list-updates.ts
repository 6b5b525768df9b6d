/** Keeps a list up to date by events: only items to which something happened are read again, where they stand. */
import { useRef, useState } from 'preact/hooks';
import type { Resource } from './api';
import { type LiveEvent, useLive } from './live';

/** With more items in a batch than this, the list is loaded once instead. */
const MAX_ASKED = 12;

export interface ListUpdates<Row, Change> {
  keyOf: (row: Row) => string;
  /** The key of the item to which it happened; undefined: to none. */
  about: (event: LiveEvent) => string | undefined;
  /** The members of an item that may have changed. */
  ask: (key: string) => Promise<Change>;
  /** Items that are not in the list, with all events; returns true to have it loaded again. */
  isNew: (keys: readonly string[], events: readonly LiveEvent[]) => boolean;
  /** Called with an item's change, before the list is redrawn. */
  onChange?: (before: Row | undefined, after: Change) => void;
  onEvents?: (events: readonly LiveEvent[]) => void;
  /** Events may have been missed: the list is loaded again, and more. */
  onGap?: () => void;
}

/** @returns keys of the items that have just changed, and what reads one of them again */
export function useListUpdates<Row, Data extends { items: readonly Row[] }, Change extends Partial<Row>>(
  of: Resource<Data>,
  options: ListUpdates<Row, Change>,
): { changed: ReadonlySet<string>; ask: (key: string) => Promise<void> } {
  const { keyOf, about, isNew, onChange, onEvents, onGap } = options;
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const asking = useRef(new Set<string>());
  const again = useRef(new Set<string>());
  const list = useRef(of.data);
  list.current = of.data;

  const ask = async (key: string): Promise<void> => {
    // One question at a time for each item; the next one has what came meanwhile.
    if (asking.current.has(key)) {
      again.current.add(key);
      return;
    }
    asking.current.add(key);
    try {
      const found = await options.ask(key);
      const before = list.current?.items.find((item) => keyOf(item) === key);
      onChange?.(before, found);
      of.update((held) => ({
        ...held,
        items: held.items.map((item) => (keyOf(item) === key ? { ...item, ...found } : item)),
      }));
    } catch {
      of.reload();
    } finally {
      asking.current.delete(key);
      if (again.current.delete(key)) ask(key);
    }
  };

  useLive('all', {
    onEvents: (events) => {
      onEvents?.(events);
      const keys = [...new Set(events.flatMap((event) => about(event) ?? []))];
      if (keys.length === 0) return;
      setChanged(new Set(keys));
      const known = new Set(list.current?.items.map(keyOf));
      const others = keys.filter((key) => !known.has(key));
      if (isNew(others, events) || keys.length > MAX_ASKED) of.reload();
      else for (const key of keys) if (known.has(key)) ask(key);
    },
    onGap: () => {
      of.reload();
      onGap?.();
    },
  });
  return { changed, ask };
}
