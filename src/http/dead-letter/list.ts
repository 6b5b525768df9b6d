/** Dead letters as a list, and what can be counted about them. */
import { type DeadLetterRetention, deadLetterStats, listDeadLetters as pageOf } from '../../across/dead-letters';
import { formatDuration } from '../../job/duration';
import { defined, given } from '../../job/envelope/fields';
import { formatInstant } from '../../job/time';
import { type AppContext, json } from '../context';
import { envelopeOf } from '../jobs/render';
import { listMembers, type PagingStyle, readPaging } from '../request/pagination';
import { queueParam, textParam, timeParam } from '../request/query';

/** A page of dead letters, newest first; operators' pages call them items. */
export async function listDeadLetters(c: AppContext, style?: PagingStyle): Promise<Response> {
  const paging = readPaging(c, style);
  const now = Date.now();
  const filter = defined({
    type: textParam(c, 'type'),
    error_type: textParam(c, 'error_type'),
    since: timeParam(c, 'since', now),
    until: timeParam(c, 'until', now),
    queues: queueParam(c, 'queue'),
  });
  const page = await pageOf(c.env, filter, paging);
  const jobs = page.jobs.map((view) => envelopeOf(c, view));
  return json(c, { [style === 'page' ? 'items' : 'jobs']: jobs, ...listMembers(paging, page) });
}

export async function showStats(c: AppContext): Promise<Response> {
  const stats = await deadLetterStats(c.env);
  const own = [...stats.retentionByQueue].map(([queue, retention]) => [queue, renderRetention(retention)] as const);
  return json(c, {
    total: stats.total,
    by_queue: Object.fromEntries(stats.byQueue),
    by_type: Object.fromEntries(stats.byType),
    by_error_type: Object.fromEntries(stats.byErrorType),
    oldest_at: given(stats.oldest, formatInstant) ?? null,
    newest_at: given(stats.newest, formatInstant) ?? null,
    retention: { ...renderRetention(stats.retention), by_queue: Object.fromEntries(own) },
  });
}

function renderRetention({ max_age, max_count }: DeadLetterRetention) {
  return { max_age: formatDuration(max_age), max_count };
}
