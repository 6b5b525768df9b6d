import type { QueueEvent } from '../../../client/event';
import { ageText, definePage, type Row } from '../page';
import { toneOf } from '../style';
import { foreign, membersText, valueText } from '../text';

/** Events that are kept. */
const KEPT = 200;

export const events = definePage<{ events: readonly QueueEvent[] }>({
  ...{ id: 'events', title: 'Events', key: 'e', scope: 'data:read' },
  load: (api) => api.get('/events?page=1&per_page=50'),
  show: (answer, _, now) => ({
    facts: [],
    columns: [
      { label: 'WHEN', end: true, rank: 1 },
      { label: 'EVENT', rank: 0 },
      { label: 'TYPE', rank: 2, most: 28 },
      { label: 'QUEUE', rank: 3, most: 20 },
      { label: 'SUBJECT', rank: 4 },
      { label: 'WHAT', rank: 0 },
    ],
    rows: answer.events.map((event) => eventRow(event, now)),
    empty: 'No recent events.',
  }),
  hear: (answer, heard) => {
    const known = new Set(answer.events.map(({ id }) => id));
    const fresh = heard.filter(({ id }) => !known.has(id)).reverse();
    return { answer: { events: [...fresh, ...answer.events].slice(0, KEPT) } };
  },
});

const SHOWN = new Set(['job_id', 'queue', 'job_type', 'worker_id', 'event']);

function eventRow({ id, type, subject, time, data }: QueueEvent, now: number): Row {
  const job = typeof data.job_id === 'string' ? data.job_id : undefined;
  const rest = Object.entries(data).filter(([name]) => !SHOWN.has(name));
  return {
    id,
    ...(job !== undefined && { opens: { page: 'job' as const, name: job } }),
    cells: [
      ageText(time, now),
      { text: foreign(type), tone: toneOf(type.slice(type.indexOf('.') + 1)) },
      foreign(valueText(data.job_type ?? '')),
      foreign(valueText(data.queue ?? '')),
      foreign(subject ?? ''),
      foreign(membersText(Object.fromEntries(rest))),
    ],
  };
}
