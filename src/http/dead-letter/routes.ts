/** Discarded jobs that wait for a human: lists, counts, and one by one, and many at once. */
import { type DeadLetterRetention, deadLetterStats, listDeadLetters as pageOf } from '../../across/dead-letters';
import * as contract from '../../contract/dead-letters';
import { defined, given, isObject, optional, readName, readQueueName } from '../../job/envelope/fields';
import { readMembers } from '../../job/envelope/members';
import { readMeta } from '../../job/envelope/option-readers';
import { invalidRequest, unsupported } from '../../job/errors';
import type { JobFilter, Range, Selection } from '../../job/filter';
import { MAX_GROUP_LENGTH } from '../../job/group';
import { renderCount, renderKept } from '../../job/retention';
import { checkRetryLayer } from '../../job/retry/validate';
import { formatInstant } from '../../job/time';
import { operateOn, previewOf } from '../bulk/operate';
import { answerSummary, continuation, statusOf } from '../bulk/render';
import { type AppContext, json, noContent } from '../context';
import { answerRetried } from '../jobs/again';
import { answerJob, envelopesOf } from '../jobs/render';
import { type JsonObject, readBody, readOptionalBody } from '../request/body';
import { within } from '../request/bounds';
import { affordable, readAge } from '../request/filter/conditions';
import { filterFromBody } from '../request/filter/read';
import { holdPage } from '../request/held';
import { requireConfirmation } from '../request/many-jobs';
import { mayCreate } from '../request/new-queues';
import { listMembers, type PagingStyle, readPaging } from '../request/pagination';
import { callJob } from '../request/path';
import { pastParam, queueParam, textParam, withPlus } from '../request/query';
import { serve } from '../route';

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
  if (override?.queue !== undefined) await mayCreate(c, [{ queue: override.queue }]);
  const view = await callJob(c, (queue, id, name) => {
    const { queue: target, ...change } = override ?? {};
    if (target !== undefined && target !== name) return queue.moveDeadLetter(id, { target, override: change });
    return queue.redrive(id, { deadLetterOnly: true, ...(override && { override: change }) });
  });
  return answerRetried(c, view);
}

const deleteDeadLetter = (c: AppContext): Promise<{ job_id: string }> =>
  callJob(c, (queue, id) => queue.deleteDeadLetter(id));

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
  const asked = defined({
    types: given(textParam(c, 'type'), (type) => [type]),
    error_type: textParam(c, 'error_type'),
    group: given(textParam(c, 'group'), (text) => readName(MAX_GROUP_LENGTH)(text, 'group')),
  });
  const times = defined({ since: pastParam(c, 'since', now), until: pastParam(c, 'until', now) });
  const { filter, queues } = within(c, { filter: asked, ...defined({ queues: queueParam(c, 'queue') }) });
  await holdPage(c, paging);
  const page = await pageOf(c.env, { ...affordable(filter), ...times, ...defined({ queues }) }, paging);
  return { jobs: envelopesOf(c, page.jobs), ...listMembers(paging, page) };
}

async function showStats(c: AppContext) {
  const stats = await deadLetterStats(c.env, c.get('queues'));
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

const renderRetention = ({ max_age, max_count }: DeadLetterRetention): contract.DeadLettersKept => ({
  max_age: renderKept(max_age),
  max_count: renderCount(max_count),
});

/** Retries or deletes the dead letters that a filter names; its times are those of the discard. */
async function actOnDeadLetters(c: AppContext, action: 'retry' | 'delete') {
  const body = await readBody(c);
  if (body.dry_run !== true) requireConfirmation(body.confirm);
  if (body.override !== undefined && body.override !== null) refuseOverride(body.override);
  const select = (now: number, until?: number) => readDeadLetterFilter(body, now, until);
  const preview = await previewOf(c, action, body, select);
  if (preview) return preview;
  const { summary, headers } = await operateOn(c, action, body, select);
  return answerSummary(c, summary, headers);
}

async function purgeDeadLetters(c: AppContext) {
  const body = (await readOptionalBody(c)) ?? {};
  const parameter = textParam(c, 'older_than');
  const olderThan = parameter === undefined ? body.older_than : withPlus(parameter);
  if (olderThan === undefined || olderThan === null) {
    throw invalidRequest('older_than', 'older_than is required: a duration such as "P30D", or a time.');
  }
  // Without a name it would mean every queue.
  if (c.req.query('queue') === '') throw invalidRequest('queue', 'queue must not be empty.');
  const queues = queueParam(c, 'queue');
  // The query is a part of the request.
  const asked = { ...body, older_than: olderThan, ...(queues && { queue: queues }) };
  const { summary, headers } = await operateOn(c, 'delete', asked, (now, until) => ({
    filter: deadOnly({}, { max: readAge(olderThan, 'older_than', now) }, until),
    ...(queues && { queues }),
  }));
  return json(c, { deleted: summary.succeeded, ...continuation(summary) }, statusOf(summary), headers);
}

/** Changes to a job are made one job at a time. */
function refuseOverride(override: unknown): never {
  const [member] = typeof override === 'object' && override !== null ? Object.keys(override) : [];
  const field = member === undefined ? 'override' : `override.${member}`;
  throw unsupported(
    `${field} is not supported for many dead letters at once: use POST /ojs/v1/dead-letter/:id/retry for each.`,
    { field },
  );
}

function readDeadLetterFilter(body: JsonObject, now: number, until: number | undefined): Selection {
  // All of them is a legitimate request here, and it is confirmed.
  const given = body.filter === undefined || body.filter === null ? {} : body.filter;
  const everything = isObject(given) && Object.keys(given).length === 0;
  const { filter, queues }: Selection = everything ? { filter: {} } : filterFromBody(given, now);
  const { created, ...rest } = filter;
  return { filter: deadOnly(rest, { ...created, ...rest.ended }, until), ...(queues && { queues }) };
}

/** @param discarded when they were discarded @param until jobs discarded later do not count, epoch ms */
function deadOnly(filter: JobFilter, discarded: Range, until: number | undefined): JobFilter {
  const ended = until === undefined ? discarded : { ...discarded, max: Math.min(discarded.max ?? until, until) };
  return { ...filter, states: ['discarded'], dead: true, ...(Object.keys(ended).length > 0 && { ended }) };
}
