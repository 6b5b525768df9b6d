/** The queues as two pages show them. Only queues in which something happens are asked again. */
import type { QueueEvent } from '../../../client/event';
import { pathTo } from '../../../client/transport';
import type { QueueStanding } from '../../../contract/queues';
import type { Named } from '../../../producer/names';
import type { Api } from '../api';
import { bad, type Cell, type Change, type Column, faint, lastsText, msText, numberText, type Row } from '../page';
import { toneOf } from '../style';
import { foreign } from '../text';

/** A queue as the list has it. */
export type QueueItem = Named<QueueStanding>;

export interface QueuesAnswer {
  items: readonly QueueItem[];
  total: number;
}

/** No more queues than a follower of everything may have. */
const MOST_PAGES = 2;
const PER_REQUEST = 100;

export async function loadQueues(api: Api): Promise<QueuesAnswer> {
  const items: QueueItem[] = [];
  let total = 0;
  for (let page = 1; page <= MOST_PAGES; page++) {
    const found = await api.get<QueuesAnswer>(`/admin/queues?page=${page}&per_page=${PER_REQUEST}`);
    items.push(...found.items);
    total = found.total;
    if (items.length >= total || found.items.length === 0) break;
  }
  return { items, total };
}

/** With more queues in a batch of events than this, the list is loaded instead. */
const MOST_ASKED = 12;

/** The queues that events are of. */
const queuesIn = (events: readonly QueueEvent[]): string[] => [
  ...new Set(events.flatMap(({ data }) => (typeof data.queue === 'string' ? [data.queue] : []))),
];

export function hearQueues({ items, total }: QueuesAnswer, events: readonly QueueEvent[]): Change<never> {
  const names = queuesIn(events);
  if (names.length === 0) return {};
  const known = new Set(items.map(({ name }) => name));
  const isNew = names.some((name) => !known.has(name)) && items.length >= total;
  return isNew || names.length > MOST_ASKED ? { reload: true } : { ask: names.filter((name) => known.has(name)) };
}

/** @returns what puts the queues as they are now into a list */
export async function askQueues(api: Api, names: readonly string[]): Promise<(list: QueuesAnswer) => QueuesAnswer> {
  const found = await Promise.all(names.map((name) => api.get<QueueItem>(pathTo`/admin/queues/${name}`)));
  const byName = new Map(found.map((item) => [item.name, item]));
  return ({ items, total }) => ({ total, items: items.map((item) => byName.get(item.name) ?? item) });
}

export const QUEUE_COLUMNS: readonly Column[] = [
  { label: 'QUEUE', rank: 0, most: 40 },
  { label: 'STATUS', rank: 1 },
  { label: 'AVAILABLE', end: true, rank: 0 },
  { label: 'ACTIVE', end: true, rank: 2 },
  { label: 'LATER', end: true, rank: 5 },
  { label: 'RETRYING', end: true, rank: 4 },
  { label: 'DISCARDED', end: true, rank: 3 },
  { label: 'DONE/MIN', end: true, rank: 6 },
  { label: 'ERRORS', end: true, rank: 7 },
  { label: 'P95', end: true, rank: 9 },
  { label: 'OLDEST', end: true, rank: 8 },
];

export function queueRow(item: QueueItem, now: number): Row {
  const { name, status, counts, throughput, errorRate, latencyMs, oldestAvailableAt, concurrency } = item;
  const { available = 0, active = 0, scheduled = 0, pending = 0, retryable = 0, discarded = 0 } = counts;
  return {
    id: name,
    thing: { kind: 'queue', id: name, state: status },
    opens: { page: 'queue', name },
    cells: [
      foreign(name),
      { text: status, tone: toneOf(status === 'active' ? '' : status) },
      count(available),
      concurrency.limit === null ? count(active) : `${numberText(active)}/${numberText(concurrency.limit)}`,
      count(scheduled + pending),
      count(retryable),
      count(discarded, true),
      count(throughput.processedPerMinute),
      percent(errorRate),
      msText(latencyMs.p95),
      lastsText(oldestAvailableAt, now),
    ],
  };
}

/** @param isTrouble it is so that there is any */
export function count(value: number, isTrouble = false): Cell {
  if (value === 0) return faint('0');
  return isTrouble ? bad(numberText(value)) : numberText(value);
}

export function percent(share: number): Cell {
  const text = `${Math.round(share * 1000) / 10} %`;
  if (share === 0) return faint(text);
  return share >= 0.05 ? bad(text) : text;
}

/** Jobs that have not ended, the most first. */
export const byDepth = (a: QueueItem, b: QueueItem): number => depth(b) - depth(a) || (a.name < b.name ? -1 : 1);

function depth({ counts }: QueueItem): number {
  const { completed = 0, cancelled = 0, discarded = 0 } = counts;
  return Object.values(counts).reduce((all, one) => all + one, 0) - completed - cancelled - discarded;
}
