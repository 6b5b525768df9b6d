import { useEffect, useRef, useState } from 'preact/hooks';
import type { JobItems, JobSummary } from '../../../contract/jobs';
import type { JobState } from '../../../job/states';
import type { Resource } from '../../core/api';
import { api } from '../../core/api';
import { channelOf, type LiveEvent, useLive } from '../../core/live';
import { pageNumber, query, url } from '../../core/router';
import { detailQuery } from './columns';
import { filterQuery, fits, isSearch, statesShown } from './filter';

const MAX_ASKED = 100;

/** @returns ids of jobs that have just changed, how many came that belong on this page, and what shows these */
export function useJobUpdates(jobs: Resource<JobItems>) {
  const [changed, setChanged] = useState<ReadonlySet<string>>(new Set());
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  const asking = useRef(false);
  const waiting = useRef(new Set<string>());
  const forget = () => setFresh((held) => (held.size === 0 ? held : new Set()));
  useEffect(forget, [url.value.search]);

  /** The rows as they are now: one question for all that changed. */
  const ask = async (): Promise<void> => {
    const ids = [...waiting.current].slice(0, MAX_ASKED);
    if (asking.current || ids.length === 0) return;
    asking.current = true;
    for (const id of ids) waiting.current.delete(id);
    try {
      const { items } = await api.get<JobItems>('admin/jobs', {
        ...detailQuery(),
        id: ids.join(),
        per_page: MAX_ASKED,
      });
      const found = new Map(items.map((item) => [item.id, item]));
      jobs.update((list) => ({ ...list, items: list.items.map((item) => found.get(item.id) ?? item) }));
    } catch {
      jobs.reload();
    } finally {
      asking.current = false;
      ask();
    }
  };

  /** Counts those that the list would show above what it shows. */
  const count = async (ids: readonly string[]): Promise<void> => {
    if (ids.length === 0 || pageNumber() > 1 || query('sort') !== '') return;
    const filter = filterQuery();
    const fitting = isSearch()
      ? await api
          .get<JobItems>('admin/jobs', { ...filter, id: ids.slice(0, MAX_ASKED).join(), per_page: MAX_ASKED })
          .then(({ items }) => items.map(({ id }) => id))
          .catch(() => [])
      : ids;
    if (fitting.length > 0) setFresh((held) => new Set([...held, ...fitting]));
  };

  useLive(channelOf(query('queue')), {
    onEvents: (events) => {
      const shown = new Set(jobs.data?.items.map(({ id }) => id));
      const own = withoutTwins(events).filter(
        ({ data }) => typeof data.job_id === 'string' && fits(data.queue, data.type),
      );
      const ids = own.map(({ data }) => String(data.job_id));
      const here = new Set(ids.filter((id) => shown.has(id)));
      if (own.length > 0) jobs.update((list) => moved(list, own));
      if (here.size > 0) {
        setChanged(here);
        for (const id of here) waiting.current.add(id);
        ask();
      }
      count([...new Set(own.filter(isArrival).map(({ data }) => String(data.job_id)))].filter((id) => !shown.has(id)));
    },
    onGap: jobs.reload,
  });
  // One that came while the list was being loaded may be in it.
  const shown = new Set(jobs.data?.items.map(({ id }) => id));
  return {
    changed,
    newer: [...fresh].filter((id) => !shown.has(id)).length,
    show: () => {
      forget();
      jobs.reload();
    },
  };
}

const BORN: Readonly<Record<string, JobState>> = { 'job.enqueued': 'available', 'job.scheduled': 'scheduled' };

/** A change of state has its own event beside the one that says why; that of a job that is new has none. */
function withoutTwins(events: readonly LiveEvent[]): readonly LiveEvent[] {
  const changes = new Set(
    events.flatMap(({ id, event }) => (event === 'job.state_changed' ? [id.replace(/\.\d+$/, '')] : [])),
  );
  return events.filter(({ id, event }) => event === 'job.state_changed' || !changes.has(id));
}

function stateIn(one: LiveEvent): string | undefined {
  if (one.event === 'job.state_changed') return String(one.data.to);
  return isBirth(one) ? BORN[one.event] : undefined;
}

const isBirth = ({ event, data }: LiveEvent): boolean => event in BORN && data.attempt === 0 && data.redrive !== true;

function isArrival(event: LiveEvent): boolean {
  const states = statesShown();
  const state = stateIn(event);
  return states.length === 0 ? isBirth(event) : state !== undefined && states.includes(state);
}

/** Updates row states, and counts where each event has all they depend on, before the server is asked. */
function moved(list: JobItems, events: readonly LiveEvent[]): JobItems {
  const states = new Map<string, JobState>();
  const counts = { ...list.counts };
  let born = 0;
  for (const one of events) {
    const { event, data } = one;
    if (event === 'job.state_changed') {
      const [from, to] = [data.from as JobState, data.to as JobState];
      states.set(String(data.job_id), to);
      counts[from] = Math.max(0, (counts[from] ?? 0) - 1);
      counts[to] = (counts[to] ?? 0) + 1;
    } else if (isBirth(one)) {
      const state = BORN[event] as JobState;
      counts[state] = (counts[state] ?? 0) + 1;
      born++;
    }
  }
  const items = list.items.map((item): JobSummary => {
    const state = states.get(item.id);
    return state === undefined ? item : { ...item, state };
  });
  if (!list.counts || isSearch()) return { ...list, items };
  return { ...list, items, counts, total: list.total + (statesShown().length === 0 ? born : 0) };
}
