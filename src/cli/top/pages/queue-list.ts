/** The queues as two pages show them. Only queues in which something happens are asked again. */
import type { QueueEvent } from '../../../client/follow';
import { pathTo } from '../../../client/transport';
import type { QueueStanding } from '../../../contract/queues';
import type { Named } from '../../../producer/names';
import type { Column } from '../../views';
import type { Api } from '../api';
import { bad, type Cell, type Change, faint, lastsText, listOf, msText, numberText } from '../page';

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

const queuesIn = (events: readonly QueueEvent[]): string[] => [
  ...new Set(events.flatMap(({ data }) => (typeof data.queue === 'string' ? [data.queue] : []))),
];

export function receiveQueues({ items, total }: QueuesAnswer, events: readonly QueueEvent[]): Change<never> {
  const names = queuesIn(events);
  if (names.length === 0) return {};
  const known = new Set(items.map(({ name }) => name));
  const isNew = names.some((name) => !known.has(name)) && items.length >= total;
  return isNew || names.length > MOST_ASKED ? { reload: true } : { ask: names.filter((name) => known.has(name)) };
}

export async function askQueues(api: Api, names: readonly string[]): Promise<(list: QueuesAnswer) => QueuesAnswer> {
  const found = await Promise.all(names.map((name) => api.get<QueueItem>(pathTo`/admin/queues/${name}`)));
  const byName = new Map(found.map((item) => [item.name, item]));
  return ({ items, total }) => ({ total, items: items.map((item) => byName.get(item.name) ?? item) });
}

const QUEUE_COLUMNS: readonly Column<QueueItem>[] = [
  ['QUEUE', ({ name }) => name, { most: 40 }],
  ['STATUS', ({ status }) => status, { rank: 1, is: 'mode' }],
  ['AVAILABLE', ({ counts: { available = 0 } }) => available, { end: true }],
  [
    'ACTIVE',
    ({ counts: { active = 0 }, concurrency: { limit } }) =>
      limit === null ? active : `${numberText(active)}/${numberText(limit)}`,
    { rank: 2, end: true },
  ],
  ['LATER', ({ counts: { scheduled = 0, pending = 0 } }) => scheduled + pending, { rank: 5, end: true }],
  ['RETRYING', ({ counts: { retryable = 0 } }) => retryable, { rank: 4, end: true }],
  ['DISCARDED', ({ counts: { discarded = 0 } }) => discarded, { rank: 3, end: true, is: 'bad' }],
  ['DONE/MIN', ({ throughput }) => throughput.processedPerMinute, { rank: 6, end: true }],
  ['ERRORS', ({ errorRate }) => percent(errorRate), { rank: 7, end: true }],
  ['P95', ({ latencyMs }) => msText(latencyMs.p95), { rank: 9, end: true }],
  ['OLDEST', ({ oldestAvailableAt }, now) => lastsText(oldestAvailableAt, now), { rank: 8, end: true }],
];

export const listQueues = (items: readonly QueueItem[], now: number) =>
  listOf(items, QUEUE_COLUMNS, now, ({ name, status }) => ({
    id: name,
    thing: { kind: 'queue', id: name, state: status },
    opens: { page: 'queue', name },
  }));

export const paceText = (enqueued: number, done: number, failed: number): string =>
  `${numberText(enqueued)} enqueued · ${numberText(done)} done · ${numberText(failed)} failed`;

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
