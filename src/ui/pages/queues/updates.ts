/** Keeps the list of queues up to date by what happens in them: only queues in which something happened are asked. */
import { useRef, useState } from 'preact/hooks';
import { api } from '../../core/api';
import { segment } from '../../core/base';
import { useLive } from '../../core/live';
import type { Resource } from '../../core/resource';
import type { QueueItem, QueueList } from './types';

/** With more queues in a batch than this, the list is loaded once instead. */
const MAX_ASKED = 12;

/** @returns names of the queues that have just changed */
export function useQueueUpdates(queues: Resource<QueueList>): ReadonlySet<string> {
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const asking = useRef(new Set<string>());
  const again = useRef(new Set<string>());

  const ask = async (name: string): Promise<void> => {
    // One question at a time for each queue; the next one has what came meanwhile.
    if (asking.current.has(name)) {
      again.current.add(name);
      return;
    }
    asking.current.add(name);
    try {
      const found = await api.get<QueueItem>(`admin/queues/${segment(name)}`);
      queues.update((list) => ({
        ...list,
        items: list.items.map((item) => (item.name === name ? { ...item, ...found, ...keepRecent(item) } : item)),
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
      const names = new Set(events.flatMap(({ data }) => (typeof data.queue === 'string' ? [data.queue] : [])));
      if (names.size === 0) return;
      setChanged(names);
      const known = new Set(queues.data?.items.map(({ name }) => name));
      const isNew = [...names].some((name) => !known.has(name)) && (queues.data?.items.length ?? 0) < 100;
      if (isNew || names.size > MAX_ASKED) queues.reload();
      else for (const name of names) if (known.has(name)) ask(name);
    },
    onGap: queues.reload,
  });
  return changed;
}

function keepRecent({ recent }: QueueItem): Pick<QueueItem, 'recent'> {
  return recent ? { recent } : {};
}
