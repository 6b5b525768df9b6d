/** Discarded jobs that wait for a human: lists, counts, and one by one. Many at once: `bulk.ts`. */

import { type DeadLetterRetention, deadLetterStats, listDeadLetters as pageOf } from '../../across/dead-letters';
import { formatDuration } from '../../job/duration';
import { defined, given, optional, readObject, readQueueName } from '../../job/envelope/fields';
import { readMeta } from '../../job/envelope/parse';
import { unsupported } from '../../job/errors';
import { checkRetryLayer } from '../../job/retry/validate';
import { formatInstant } from '../../job/time';
import { type AppContext, json, respond } from '../context';
import { answerJob, envelopeOf } from '../jobs/render';
import { type JsonObject, readOptionalBody } from '../request/body';
import { holdPage } from '../request/held';
import { mayCreate } from '../request/new-queues';
import { listMembers, type PagingStyle, readPaging } from '../request/pagination';
import { callJob } from '../request/path';
import { pastParam, queueParam, textParam } from '../request/query';
import { del, get, post, type Route } from '../route';
import { actOnDeadLetters, purgeDeadLetters } from './bulk';

/** Offered in both places. */
const shared: readonly Route[] = [
  get('/dead-letter/stats', showStats),
  post('/dead-letter/retry', (c) => actOnDeadLetters(c, 'retry'), {
    audit: 'dead_letters.retry',
    takesIdempotencyKey: true,
  }),
  del('/dead-letter', (c) => actOnDeadLetters(c, 'delete'), {
    audit: 'dead_letters.delete',
    scope: 'admin:purge',
    takesIdempotencyKey: true,
  }),
  post('/dead-letter/:id/retry', retryDeadLetter, { audit: 'dead_letter.retry' }),
];

/** Routes below `/ojs/v1`. */
export const deadLetterRoutes: readonly Route[] = [
  get('/dead-letter', (c) => listDeadLetters(c)),
  ...shared,
  get('/dead-letter/:id', async (c) => answerJob(c, await callJob(c, (queue, id) => queue.deadLetter(id)))),
  post('/dead-letter/purge', purgeDeadLetters, {
    audit: 'dead_letters.purge',
    scope: 'admin:purge',
    takesIdempotencyKey: true,
  }),
  del('/dead-letter/:id', async (c) => json(c, { deleted: true, ...(await deleteDeadLetter(c)) }), {
    audit: 'dead_letter.delete',
    scope: 'admin:purge',
  }),
];

/** Routes below `/ojs/v1/admin`. */
export const adminDeadLetterRoutes: readonly Route[] = [
  get('/dead-letter', (c) => listDeadLetters(c, 'page')),
  ...shared,
  del('/dead-letter/:id', (c) => deleteDeadLetter(c).then(() => respond(c, null, 204)), {
    audit: 'dead_letter.delete',
    scope: 'admin:purge',
  }),
];

/** Gives a dead letter another life, in its queue or in the one that the override names. */
async function retryDeadLetter(c: AppContext): Promise<Response> {
  const override = readOverride((await readOptionalBody(c)) ?? {});
  if (override?.queue !== undefined) await mayCreate(c, [override.queue]);
  const view = await callJob(c, (queue, id, name) => {
    const { queue: target, ...change } = override ?? {};
    if (target !== undefined && target !== name) return queue.moveDeadLetter(id, { target, override: change });
    return queue.redrive(id, { deadLetterOnly: true, ...(override && { override: change }) });
  });
  return answerJob(c, view);
}

/** Removes a dead letter for good. */
function deleteDeadLetter(c: AppContext): Promise<{ job_id: string }> {
  return callJob(c, (queue, id) => queue.deleteDeadLetter(id));
}

const OVERRIDABLE = ['queue', 'meta', 'retry'];

/** What to change about the job before it runs again. @throws {ApiError} 400, 413, 422 */
function readOverride(body: JsonObject) {
  const given = optional(body, 'override', readObject);
  if (given === undefined) return undefined;
  const unknown = Object.keys(given).find((name) => !OVERRIDABLE.includes(name));
  if (unknown !== undefined) {
    throw unsupported(`override.${unknown} cannot be changed.`, { field: `override.${unknown}` });
  }
  return defined({
    queue: optional(given, 'queue', readQueueName, 'override.'),
    meta: optional(given, 'meta', readMeta, 'override.'),
    retry: optional(given, 'retry', (value, field) => checkRetryLayer(value, field), 'override.'),
  });
}

/** A page of dead letters, newest first; operators' pages call them items. */
export async function listDeadLetters(c: AppContext, style?: PagingStyle): Promise<Response> {
  const paging = readPaging(c, style);
  const now = Date.now();
  const filter = defined({
    type: textParam(c, 'type'),
    error_type: textParam(c, 'error_type'),
    since: pastParam(c, 'since', now),
    until: pastParam(c, 'until', now),
    queues: queueParam(c, 'queue'),
  });
  await holdPage(c, paging);
  const page = await pageOf(c.env, filter, paging);
  const jobs = page.jobs.map((view) => envelopeOf(c, view));
  return json(c, { [style === 'page' ? 'items' : 'jobs']: jobs, ...listMembers(paging, page) });
}

async function showStats(c: AppContext): Promise<Response> {
  const stats = await deadLetterStats(c.env);
  const own = [...stats.retentionByQueue].map(([queue, retention]) => [queue, renderRetention(retention)] as const);
  return json(c, {
    total: stats.total,
    by_queue: Object.fromEntries(stats.byQueue),
    by_type: Object.fromEntries(stats.byType),
    by_error_type: Object.fromEntries(stats.byErrorType),
    ...(!stats.complete && { counts_are_exact: false }),
    oldest_at: given(stats.oldest, formatInstant) ?? null,
    newest_at: given(stats.newest, formatInstant) ?? null,
    retention: { ...renderRetention(stats.retention), by_queue: Object.fromEntries(own) },
  });
}

function renderRetention({ max_age, max_count }: DeadLetterRetention) {
  return { max_age: formatDuration(max_age), max_count };
}
