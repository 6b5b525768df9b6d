/** Operations on all dead letters that match a filter. */
import { isObject } from '../../job/envelope/fields';
import { invalidRequest, unsupported } from '../../job/errors';
import type { JobFilter, Range, Selection } from '../../job/filter';
import { operateOn, previewOf } from '../bulk/operate';
import { answerSummary, continuation, statusOf } from '../bulk/render';
import { type AppContext, json } from '../context';
import { type JsonObject, readBody, readOptionalBody } from '../request/body';
import { readAge } from '../request/filter/conditions';
import { filterFromBody } from '../request/filter/from-body';
import { requireConfirmation } from '../request/many-jobs';
import { queueParam, textParam, withPlus } from '../request/query';

/** Retries or deletes the dead letters that a filter names; its times are those of the discard. */
export async function actOnDeadLetters(c: AppContext, action: 'retry' | 'delete') {
  const body = await readBody(c);
  if (body.dry_run !== true) requireConfirmation(body.confirm);
  if (body.override !== undefined && body.override !== null) refuseOverride(body.override);
  const select = (now: number, until?: number) => readDeadLetterFilter(body, now, until);
  const preview = await previewOf(c, action, body, select);
  if (preview) return preview;
  const { summary, headers } = await operateOn(c, action, body, select);
  return answerSummary(c, summary, headers);
}

/** Removes dead letters that are old enough. */
export async function purgeDeadLetters(c: AppContext) {
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
