/** Keeps the counts of groups up to date where they stand; groups that are new are counted until they are asked for. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { FailureGroup, FailureGroups } from '../../../contract/failures';
import type { Resource } from '../../core/api';
import { channelOf, type LiveEvent, useLive } from '../../core/live';
import { query, url } from '../../core/router';

/** Shortest time between two questions, in ms: each groups the failures of the queues in which something changed. */
const PAUSE_MS = 1_500;

/** Events after which a group has other jobs than before. */
function matters({ event, data }: LiveEvent): boolean {
  if (event === 'job.state_changed') return /retryable|discarded/.test(`${data.from} ${data.to}`);
  return event === 'job.discarded' || event === 'job.expired';
}

export interface Updates {
  changed: ReadonlySet<string>;
  newer: number;
  show: () => void;
}

export function useGroupUpdates(groups: Resource<FailureGroups>, load: () => Promise<FailureGroups>): Updates {
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const [newer, setNewer] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const askedAt = useRef(0);
  const current = useRef(load);
  current.current = load;
  const place = url.value.search;
  useEffect(() => setNewer(0), [place]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const ask = async () => {
    timer.current = undefined;
    askedAt.current = Date.now();
    const found = await current.current().catch(() => undefined);
    if (!found || url.value.search !== place) return;
    const now = new Map(found.items.map((group) => [group.fingerprint, group]));
    const held = groups.data?.items ?? [];
    setChanged(
      new Set(held.filter((group) => isOther(group, now.get(group.fingerprint))).map(({ fingerprint }) => fingerprint)),
    );
    setNewer(found.items.filter(({ fingerprint }) => !held.some((group) => group.fingerprint === fingerprint)).length);
    groups.update((list) => ({
      ...list,
      items: list.items.map((group) => now.get(group.fingerprint) ?? emptied(group)),
    }));
  };

  useLive(channelOf(query('queue')), {
    onEvents: (events) => {
      if (!events.some(matters)) return;
      timer.current ??= setTimeout(ask, Math.max(0, askedAt.current + PAUSE_MS - Date.now()));
    },
    onGap: groups.reload,
  });
  return {
    changed,
    newer,
    show: () => {
      setNewer(0);
      groups.reload();
    },
  };
}

function isOther(group: FailureGroup, now: FailureGroup | undefined): boolean {
  return now?.count !== group.count || now.last_seen_at !== group.last_seen_at;
}

function emptied(group: FailureGroup): FailureGroup {
  return { ...group, count: 0, dead: 0, discarded: 0, retrying: 0 };
}
