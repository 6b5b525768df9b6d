/** Keeps queues up to date by what happens in them: only queues in which something happened are asked. */
import { useRef, useState } from 'preact/hooks';
import { api } from '../../core/api';
import { segment } from '../../core/base';
import { type LiveEvent, useLive } from '../../core/live';
import type { Resource } from '../../core/resource';
import type { QueueItem, QueueList } from './types';

/** With more queues in a batch than this, the list is loaded once instead. */
const MAX_ASKED = 12;

export interface UpdateOptions {
  /** Would a queue of this name that is not in the list stand there? */
  belongs: (name: string) => boolean;
  /** Called with a queue's change, before the list is redrawn. */
  onChange?: (before: QueueItem | undefined, after: QueueItem) => void;
  /** Is given every batch of events. */
  onEvents?: (events: readonly LiveEvent[]) => void;
  /** Events may have been missed. */
  onGap?: () => void;
}

export function useQueueUpdates(queues: Resource<QueueList>, options: UpdateOptions): ReadonlySet<string> {
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const asking = useRef(new Set<string>());
  const again = useRef(new Set<string>());
  const list = useRef(queues.data);
  list.current = queues.data;

  const ask = async (name: string): Promise<void> => {
    // One question at a time for each queue; the next one has what came meanwhile.
    if (asking.current.has(name)) {
      again.current.add(name);
      return;
    }
    asking.current.add(name);
    try {
      const found = await api.get<QueueItem>(`admin/queues/${segment(name)}`, { include: 'recent' });
      options.onChange?.(
        list.current?.items.find((item) => item.name === name),
        found,
      );
      queues.update((held) => ({
        ...held,
        items: held.items.map((item) => (item.name === name ? { ...item, ...found } : item)),
      }));
    } catch {
      queues.reload();
    } finally {
      asking.current.delete(name);
      if (again.current.delete(name)) ask(name);
    }
  };

  useLive('all', {
    onEvents: (events) => {
      options.onEvents?.(events);
      const names = new Set(events.flatMap(({ data }) => (typeof data.queue === 'string' ? [data.queue] : [])));
      if (names.size === 0) return;
      setChanged(names);
      const known = new Set(list.current?.items.map(({ name }) => name));
      const isNew = [...names].some((name) => !known.has(name) && options.belongs(name));
      if (isNew || names.size > MAX_ASKED) queues.reload();
      else for (const name of names) if (known.has(name)) ask(name);
    },
    onGap: () => {
      queues.reload();
      options.onGap?.();
    },
  });
  return changed;
}
