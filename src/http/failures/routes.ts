/** Failed jobs in groups: lists, one group, and another life or an end for all of it. */
import {
  type FailureGroupAcross,
  type FailureSelection,
  type FailuresFound,
  findFailures,
} from '../../across/failures';
import { type FailureGroup, type FailureSearch, failures } from '../../contract/failures';
import { defined, given, readQueueName } from '../../job/envelope/fields';
import { invalidRequest, notFound } from '../../job/errors';
import { normaliseMessage } from '../../job/failures/fingerprint';
import type { JobFilter, Selection } from '../../job/filter';
import { own } from '../../job/own';
import { withWrittenTimes } from '../../job/time';
import { FAILURE_STATES, type FailureState } from '../../rpc/failures';
import type { BulkAction } from '../../rpc/operations';
import { operateOn, previewOf } from '../bulk/operate';
import { answerSummary } from '../bulk/render';
import { type AppContext, json } from '../context';
import { readBody } from '../request/body';
import { boundsOf, within } from '../request/bounds';
import { affordable, readFingerprints, readMoment, readTypes } from '../request/filter/conditions';
import { requireConfirmation } from '../request/many-jobs';
import { listMembers, pageOf, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { listParam, oneOf, queueParam, textParam, withPlus, wordParam } from '../request/query';
import { serve } from '../route';

const ORDERS = ['count', 'last_seen', 'first_seen'] as const;

export const adminFailureRoutes = serve(failures, {
  list,
  show,
  redrive: (c) => act(c, 'retry'),
  discard: (c) => act(c, 'purge'),
});

async function list(c: AppContext) {
  const { cursor, ...paging } = readPaging(c, 'page');
  const order = wordParam(c, 'sort', ORDERS, 'count');
  const found = await findFailures(c.env, selectionOf(c), cursor);
  const groups = found.groups.sort((a, b) => rankOf(b, order) - rankOf(a, order) || compare(a, b));
  const page = pageOf(groups, paging);
  const members = listMembers(paging, { ...page, atLeast: found.cursor !== null });
  return json(c, { items: page.items.map(render), ...members, ...searchOf(c, found) });
}

/** One group. What was not looked at is not in its counts, and the answer says so. */
async function show(c: AppContext) {
  const fingerprint = fingerprintIn(c);
  const found = await findFailures(c.env, { ...selectionOf(c), fingerprints: [fingerprint] }, textParam(c, 'cursor'));
  const [group] = found.groups;
  if (!group && found.cursor === null) {
    throw notFound(
      'group of failures',
      fingerprint,
      'Its jobs were retried, completed or deleted. GET /admin/failures lists groups.',
    );
  }
  const none = { fingerprint, count: 0, dead: 0, discarded: 0, retrying: 0 };
  return json(c, { ...(group ? render(group) : none), ...searchOf(c, found) });
}

/** How far was looked. Where others' jobs and queues were among that, their numbers and names are left out. */
function searchOf(c: AppContext, { searched, leftOut, cursor, groups }: FailuresFound): FailureSearch {
  const { types, groups: boundGroups, queues } = boundsOf(c) ?? {};
  const more = cursor !== null;
  if (!types && !boundGroups) return { searched, more, cursor, ...(leftOut > 0 && { queues_left_out: leftOut }) };
  return { searched: groups.reduce((sum, { count }) => sum + count, 0), more, cursor: queues ? cursor : null };
}

function selectionOf(c: AppContext): FailureSelection {
  const now = Date.now();
  const moment = (name: string) => given(textParam(c, name), (text) => readMoment('ended', withPlus(text), name, now));
  const types = given(listParam(c, 'type'), (list) => readTypes(list, 'type'));
  const asked = within(c, { filter: defined({ types }), ...defined({ queues: queueParam(c, 'queue') }) });
  const { types: narrowed, groups } = affordable(asked.filter);
  return {
    states: oneOf(listParam(c, 'state'), FAILURE_STATES, 'state') ?? FAILURE_STATES,
    ...defined({ types: narrowed, groups, since: moment('since'), until: moment('until'), queues: asked.queues }),
  };
}

const rankOf = (group: FailureGroupAcross, order: (typeof ORDERS)[number]): number =>
  order === 'count' ? group.count : group[`${order}_at`];

const compare = (a: FailureGroupAcross, b: FailureGroupAcross): number =>
  b.last_seen_at - a.last_seen_at || (a.fingerprint < b.fingerprint ? -1 : 1);

function render(group: FailureGroupAcross): FailureGroup {
  const { fingerprint, failure, count, dead, discarded, retrying, queues, first_seen_at, last_seen_at, job_id } = group;
  const { type, error_type, code, message } = failure;
  return {
    fingerprint,
    type,
    error: { type: error_type, code, message: normaliseMessage(message) },
    ...{ count, dead, discarded, retrying, queues },
    ...withWrittenTimes({ first_seen_at, last_seen_at }),
    sample: { job_id, message },
  };
}

function fingerprintIn(c: AppContext): string {
  const [fingerprint] = readFingerprints([pathParam(c, 'fingerprint')], 'fingerprint');
  return fingerprint as string;
}

/** Acts on all jobs of a group: retries or removes them, including those that wait for an attempt. */
async function act(c: AppContext, action: BulkAction) {
  const fingerprint = fingerprintIn(c);
  const body = await readBody(c);
  const preview = await previewOf(c, action, body, () => groupIn(body, fingerprint));
  if (preview) return preview;
  requireConfirmation(body.confirm);
  const { summary, headers } = await operateOn(c, action, body, () => groupIn(body, fingerprint));
  return answerSummary(c, summary, headers);
}

function groupIn(body: Record<string, unknown>, fingerprint: string): Selection {
  const listed = (name: string): string[] | undefined => {
    const value = own(body, name) ?? undefined;
    if (value === undefined) return undefined;
    const list = Array.isArray(value) ? value : [value];
    if (list.length > 0 && list.every((entry) => typeof entry === 'string')) return list;
    throw invalidRequest(name, `${name} must be a string or a list of strings.`);
  };
  const types = listed('type');
  const queues = listed('queue')?.map((queue) => readQueueName(queue, 'queue'));
  const states = oneOf(listed('state'), FAILURE_STATES, 'state') ?? FAILURE_STATES;
  const filter: JobFilter = { ...statesOf(states), fingerprints: [fingerprint] };
  if (types) filter.types = readTypes(types, 'type');
  return { filter, ...(queues && { queues }) };
}

/** @throws {ApiError} 400 for a choice that a filter cannot express */
function statesOf(states: readonly FailureState[]): JobFilter {
  const [dead, discarded, retrying] = FAILURE_STATES.map((state) => states.includes(state));
  if (retrying && dead !== discarded) {
    throw invalidRequest('state', 'state: with "retrying" name both "dead" and "discarded", or neither.');
  }
  if (!dead && !discarded) return { states: ['retryable'] };
  return {
    states: retrying ? ['discarded', 'retryable'] : ['discarded'],
    ...(dead !== discarded && { dead: dead === true }),
  };
}
