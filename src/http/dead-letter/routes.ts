/** Discarded jobs that wait for a human: lists, counts, and one by one. Many at once: `bulk.ts`. */

import { type DeadLetterRetention, deadLetterStats, listDeadLetters as pageOf } from '../../across/dead-letters';
import * as contract from '../../contract/dead-letters';
import { defined, given, optional, readName, readQueueName } from '../../job/envelope/fields';
import { readMembers } from '../../job/envelope/members';
import { readMeta } from '../../job/envelope/option-readers';
import { unsupported } from '../../job/errors';
import { MAX_GROUP_LENGTH } from '../../job/group';
import { renderCount, renderKept } from '../../job/retention';
import { checkRetryLayer } from '../../job/retry/validate';
import { formatInstant } from '../../job/time';
import { type AppContext, json, noContent } from '../context';
import { answerRetried } from '../jobs/again';
import { answerJob, envelopesOf } from '../jobs/render';
import { readOptionalBody } from '../request/body';
import { holdPage } from '../request/held';
import { mayCreate } from '../request/new-queues';
import { listMembers, type PagingStyle, readPaging } from '../request/pagination';
import { callJob } from '../request/path';
import { pastParam, queueParam, textParam } from '../request/query';
import { serve } from '../route';
import { actOnDeadLetters, purgeDeadLetters } from './bulk';

/** Offered in both places. */
const shared = {
  stats: showStats,
  retryMany: (c: AppContext) => actOnDeadLetters(c, 'retry'),
  deleteMany: (c: AppContext) => actOnDeadLetters(c, 'delete'),
  retry: retryDeadLetter,
};

export const deadLetterRoutes = serve(contract.deadLetters, {
  ...shared,
  list: listDeadLetters,
  show: async (c) => answerJob(c, await callJob(c, (queue, id) => queue.deadLetter(id))),
  purge: purgeDeadLetters,
  delete: async (c) => json(c, { deleted: true as const, ...(await deleteDeadLetter(c)) }),
});

/** Routes below `/ojs/v1/admin`, where pages call them items. */
export const adminDeadLetterRoutes = serve(contract.adminDeadLetters, {
  ...shared,
  list: async (c) => {
    const { jobs: items, ...page } = await readPage(c, 'page');
    return json(c, { items, ...page });
  },
  delete: (c) => deleteDeadLetter(c).then(() => noContent(c)),
});

/** Gives a dead letter another life, in its queue or in the one that the override names. */
async function retryDeadLetter(c: AppContext) {
  const override = optional((await readOptionalBody(c)) ?? {}, 'override', readOverride);
  if (override?.queue !== undefined) await mayCreate(c, [override.queue]);
  const view = await callJob(c, (queue, id, name) => {
    const { queue: target, ...change } = override ?? {};
    if (target !== undefined && target !== name) return queue.moveDeadLetter(id, { target, override: change });
    return queue.redrive(id, { deadLetterOnly: true, ...(override && { override: change }) });
  });
  return answerRetried(c, view);
}

function deleteDeadLetter(c: AppContext): Promise<{ job_id: string }> {
  return callJob(c, (queue, id) => queue.deleteDeadLetter(id));
}

/** What to change about the job before it runs again. @throws {ApiError} 400, 413, 422 */
const readOverride = readMembers({ queue: readQueueName, meta: readMeta, retry: checkRetryLayer }, (field) =>
  unsupported(`${field} cannot be changed.`, { field }),
);

export async function listDeadLetters(c: AppContext) {
  return json(c, await readPage(c));
}

async function readPage(c: AppContext, style?: PagingStyle) {
  const paging = readPaging(c, style);
  const now = Date.now();
  const filter = defined({
    type: textParam(c, 'type'),
    error_type: textParam(c, 'error_type'),
    group: given(textParam(c, 'group'), (text) => readName(MAX_GROUP_LENGTH)(text, 'group')),
    since: pastParam(c, 'since', now),
    until: pastParam(c, 'until', now),
    queues: queueParam(c, 'queue'),
  });
  await holdPage(c, paging);
  const page = await pageOf(c.env, filter, paging);
  return { jobs: envelopesOf(c, page.jobs), ...listMembers(paging, page) };
}

async function showStats(c: AppContext) {
  const stats = await deadLetterStats(c.env);
  const own = [...stats.retentionByQueue].map(([queue, retention]) => [queue, renderRetention(retention)] as const);
  return json(c, {
    total: stats.total,
    by_queue: Object.fromEntries(stats.byQueue),
    by_type: Object.fromEntries(stats.byType),
    by_error_type: Object.fromEntries(stats.byErrorType),
    ...(!stats.complete && { counts_are_exact: false as const }),
    oldest_at: given(stats.oldest, formatInstant) ?? null,
    newest_at: given(stats.newest, formatInstant) ?? null,
    retention: { ...renderRetention(stats.retention), by_queue: Object.fromEntries(own) },
  });
}

function renderRetention({ max_age, max_count }: DeadLetterRetention): contract.DeadLettersKept {
  return { max_age: renderKept(max_age), max_count: renderCount(max_count) };
}
