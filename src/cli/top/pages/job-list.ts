/** Jobs in rows. Events change the rows that are shown; new jobs are only counted, so that nothing jumps. */
import type { QueueEvent } from '../../../client/follow';
import type { JobSummary } from '../../../client/jobs';
import { pathTo } from '../../../client/requests';
import type { JobItems } from '../../../contract/jobs';
import type { Named } from '../../../producer/names';
import { JOBS, type Column as ViewColumn } from '../../views';
import type { Api } from '../api';
import { type Change, type Listing, listOf, type PagePlace, pageQuery } from '../page';

export type JobAnswer = Omit<Named<JobItems>, 'pagination'>;

export async function loadJobs(api: Api, place: PagePlace, queue?: string): Promise<JobAnswer> {
  const { q, state, fingerprint } = place;
  return await api.get<JobAnswer>(`/admin/jobs?${pageQuery(place, { q, state, fingerprint, queue, counts: true })}`);
}

const jobIn = ({ data }: QueueEvent): string | undefined => (typeof data.job_id === 'string' ? data.job_id : undefined);

/** With more rows that change at once than this, the page is loaded instead. */
const MOST_ASKED = 12;

/** Progress and heartbeats change nothing of what a row shows. */
const UNSEEN = /^job\.(heartbeat|progress)$/;

export function receiveJobs({ items }: JobAnswer, events: readonly QueueEvent[], queue?: string): Change<never> {
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

const COLUMNS: readonly ViewColumn<JobSummary>[] = [
  ...JOBS,
  ['PRIORITY', ({ priority }) => priority, { rank: 6, end: true }],
];

export const showJobs = (answer: JobAnswer, now: number): Omit<Listing, 'facts'> => ({
  ...listOf(answer.items, COLUMNS, now, ({ id, state }) => ({
    id,
    thing: { kind: 'job', id, state },
    opens: { page: 'job', name: id },
  })),
  total: answer.total,
  atLeast: answer.totalIsExact === false,
  empty: answer.more ? `None in the newest ${answer.searched} jobs; older ones were not searched.` : 'No jobs.',
});
