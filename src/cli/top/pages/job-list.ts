/**
 * Jobs in rows. What happens to those that are shown changes their rows; new ones are counted, so that nothing jumps.
 */
import type { QueueEvent } from '../../../client/event';
import type { JobSummary } from '../../../client/jobs';
import { pathTo } from '../../../client/transport';
import type { JobItems } from '../../../contract/jobs';
import type { Named } from '../../../producer/names';
import type { Api } from '../api';
import {
  ageText,
  type Change,
  type Column,
  type Listing,
  type PagePlace,
  pageQuery,
  type Row,
  stateCell,
} from '../page';
import { foreign } from '../text';

export type JobAnswer = Omit<Named<JobItems>, 'pagination'>;

/** @param queue only of this one */
export async function loadJobs(api: Api, place: PagePlace, queue?: string): Promise<JobAnswer> {
  const { q, state, fingerprint } = place;
  return await api.get<JobAnswer>(`/admin/jobs?${pageQuery(place, { q, state, fingerprint, queue, counts: true })}`);
}

const jobIn = ({ data }: QueueEvent): string | undefined => (typeof data.job_id === 'string' ? data.job_id : undefined);

/** With more rows that change at once than this, the page is loaded instead. */
const MOST_ASKED = 12;

/** Progress and heartbeats change nothing of what a row shows. */
const UNSEEN = /^job\.(heartbeat|progress)$/;

export function hearJobs({ items }: JobAnswer, events: readonly QueueEvent[], queue?: string): Change<never> {
  const here = events.filter(({ type, data }) => !UNSEEN.test(type) && (queue === undefined || data.queue === queue));
  const shown = new Set(items.map(({ id }) => id));
  const ask = [...new Set(here.flatMap((event) => jobIn(event) ?? []))].filter((id) => shown.has(id));
  const newer = here.filter(({ type }) => type === 'job.enqueued' || type === 'job.scheduled');
  const fresh = newer.filter((event) => !shown.has(jobIn(event) ?? '')).length;
  if (ask.length > MOST_ASKED) return { reload: true };
  return { ...(ask.length > 0 && { ask }), ...(fresh > 0 && { newer: fresh }) };
}

export async function askJobs(api: Api, ids: readonly string[]): Promise<(answer: JobAnswer) => JobAnswer> {
  const found = await Promise.all(
    ids.map((id) => api.get<JobSummary>(pathTo`/admin/jobs/${id}`).catch(() => undefined)),
  );
  const byId = new Map(found.flatMap((job) => (job ? [[job.id, job] as const] : [])));
  return (answer) => ({ ...answer, items: answer.items.map((item) => byId.get(item.id) ?? item) });
}

const COLUMNS: readonly Column[] = [
  { label: 'ID', rank: 2 },
  { label: 'STATE', rank: 0 },
  { label: 'TYPE', rank: 0, most: 32 },
  { label: 'QUEUE', rank: 3, most: 24 },
  { label: 'TRY', end: true, rank: 4 },
  { label: 'PRIORITY', end: true, rank: 6 },
  { label: 'CREATED', end: true, rank: 1 },
  { label: 'ERROR', rank: 5 },
];

export function showJobs(answer: JobAnswer, now: number): Omit<Listing, 'facts'> {
  return {
    columns: COLUMNS,
    rows: answer.items.map((job) => jobRow(job, now)),
    total: answer.total,
    atLeast: answer.totalIsExact === false,
    empty: answer.more ? `None in the newest ${answer.searched} jobs; older ones were not searched.` : 'No jobs.',
  };
}

function jobRow(
  { id, state, type, queue, attempt, maxAttempts, priority, createdAt, error }: JobSummary,
  now: number,
): Row {
  return {
    id,
    thing: { kind: 'job', id, state },
    opens: { page: 'job', name: id },
    cells: [
      foreign(id),
      stateCell(state),
      foreign(type),
      foreign(queue),
      `${attempt}/${maxAttempts}`,
      priority,
      ageText(createdAt, now),
      error ? foreign(`${error.type ?? ''}: ${error.message}`) : '',
    ],
  };
}
