/** Operators' routes over jobs: lists, single jobs with what explains them, and operations by filter. */
import { countByState } from '../../across/counts';
import { listJobs } from '../../across/job-list';
import { listSorted } from '../../across/sorted-list';
import { operateByFilter } from '../../contract/bulk';
import {
  type InspectedError,
  type InspectedJob,
  inspectedJobs,
  type JobItems,
  type JobSummary,
  jobItems,
} from '../../contract/jobs';
import { storableText } from '../../job/attempt/notes';
import { defined } from '../../job/envelope/fields';
import { parseReport } from '../../job/envelope/json';
import { invalidRequest } from '../../job/errors';
import { fingerprintOfFailure } from '../../job/failures/fingerprint';
import { lastFailure } from '../../job/failures/last';
import type { Selection } from '../../job/filter';
import type { JobView } from '../../job/record';
import { readStepName } from '../../job/steps';
import type { EnvelopeError, JobEnvelope } from '../../job/wire';
import { type BulkAction, SORT_KEYS } from '../../rpc/operations';
import { beginning } from '../audit/entry';
import { allOrNoneByFilter, operateByFilter as operate, previewByFilter } from '../bulk/operate';
import { allOrNoneSummary, answerSummary, notApplied } from '../bulk/render';
import { type Answer, type AppContext, json } from '../context';
import { MAX_BATCH_BYTES, readBody } from '../request/body';
import { pageSeen } from '../request/bounds';
import { filterFromQuery } from '../request/filter/read';
import { holdPage } from '../request/held';
import { REPLAYED } from '../request/idempotency';
import { readAtomicity, requireConfirmation } from '../request/many-jobs';
import { listMembers, readPaging } from '../request/pagination';
import { callJob, pathParam } from '../request/path';
import { wantsParam, wordParam } from '../request/query';
import { refuseRedacted } from '../request/redacted';
import { serve } from '../route';
import { answerRetried, cloneJob, retryEdited } from './again';
import { patchJob } from './patch';
import { answerJob, envelopeOf } from './render';
import { storyMembers } from './story';

const TIMES = [
  ...(['created_at', 'enqueued_at', 'started_at', 'first_started_at'] as const),
  ...(['scheduled_at', 'completed_at', 'cancelled_at', 'discarded_at'] as const),
];

/** Routes below `/ojs/v1/admin`: the operations on many come before `jobs/:id`. */
export const adminJobRoutes = [
  ...serve(jobItems, { list }),
  ...serve(operateByFilter, {
    retry: (c) => byFilter(c, 'retry'),
    cancel: (c) => byFilter(c, 'cancel'),
    delete: (c) => byFilter(c, 'delete'),
  }),
  ...serve(inspectedJobs, {
    show,
    change: async (c) => answerJob(c, await patchJob(c)),
    retry: async (c) => answerRetried(c, await retryEdited(c)),
    answerStep,
    clone: cloneJob,
    runNow: async (c) => answerJob(c, await callJob(c, (queue, id) => queue.runNow(id))),
    cancel: async (c) => answerJob(c, await callJob(c, (queue, id) => queue.cancel(id))),
  }),
];

/** The bare envelope with what explains it: policy, complete history, why it ended. */
async function show(c: AppContext): Promise<Answer<InspectedJob>> {
  const story = wantsParam(c, 'timeline') ? await callJob(c, (queue, id) => queue.story(id)) : undefined;
  const view = story?.job ?? (await callJob(c, (queue, id) => queue.get(id)));
  const envelope = envelopeOf(c, view);
  const { reason, dead_letter } = view.record.history;
  const failure = view.record.state === 'completed' ? undefined : lastFailure(view.record.type, view.record.history);
  return json(c, {
    ...envelope,
    ...defined({ retry_policy: envelope.retry_effective }),
    errors: (envelope.errors ?? []).map(withBacktrace),
    metadata: Object.fromEntries(TIMES.flatMap((name) => (envelope[name] ? [[name, envelope[name]]] : []))),
    ...(reason !== undefined && { discard_reason: reason }),
    ...(dead_letter !== undefined && { dead_letter }),
    ...(failure && { fingerprint: fingerprintOfFailure(failure) }),
    ...(story && (await storyMembers(c, story))),
  });
}

async function answerStep(c: AppContext) {
  const name = readStepName(pathParam(c, 'name'), 'name');
  const body = await readBody(c, MAX_BATCH_BYTES, parseReport);
  refuseRedacted(c, body, 'result');
  if (body.result === undefined) throw invalidRequest('result', 'result is required: what the step returns, or null.');
  const result = storableText(body.result, 'result');
  return answerJob(c, await callJob(c, (queue, job_id) => queue.answerStep({ job_id, name, result })));
}

/** An error with its stack in lines, as the admin UI shows it. */
const withBacktrace = (error: EnvelopeError): InspectedError =>
  typeof error.stack === 'string' ? { ...error, backtrace: error.stack.split('\n') } : error;

/** Longest beginning of a job's arguments in a list, in characters. */
const MAX_ARGS = 200;

/** A page of jobs without their payloads, on request with the beginning of their arguments. */
async function list(c: AppContext) {
  const paging = readPaging(c, 'page');
  const sort = wordParam(c, 'sort', SORT_KEYS, 'created_at');
  const descending = wordParam(c, 'order', ['asc', 'desc'], 'desc') === 'desc';
  const selection = filterFromQuery(c, Date.now());
  const hasArgs = wantsParam(c, 'arguments');
  const render = (view: JobView) => {
    const { args, ...envelope } = envelopeOf(c, view);
    const shown = hasArgs && { args: beginning(args, { left: MAX_ARGS }) as unknown[] };
    return { ...summaryOf(envelope), ...shown };
  };
  await holdPage(c, paging);
  if (sort !== 'created_at' || !descending) {
    const { items, total } = await listSorted(c.env, selection, { sort, descending }, paging, render);
    const hasMore = total > paging.offset + paging.limit;
    const counts = await countsOf(c, selection);
    return json(c, { items, ...listMembers(paging, { total, hasMore, nextCursor: null }), ...counts });
  }
  const [page, counts] = await Promise.all([listJobs(c.env, selection, paging), countsOf(c, selection)]);
  return json(c, { items: page.jobs.map(render), ...listMembers(paging, pageSeen(c, page)), ...counts });
}

/** How many jobs of the list are in each state, whichever it shows; on request. */
async function countsOf(c: AppContext, selection: Selection): Promise<Pick<JobItems, 'counts' | 'counts_exact'>> {
  if (!wantsParam(c, 'counts')) return {};
  const { counts, exact } = await countByState(c.env, selection);
  return { counts, ...(!exact && { counts_exact: false }) };
}

/** Everything about a job but its payload and its history. */
function summaryOf(envelope: Omit<JobEnvelope, 'args'>): JobSummary {
  const { meta: __, result: ___, errors: ____, retry_effective: _____, ...summary } = envelope;
  return summary;
}

async function byFilter(c: AppContext, action: BulkAction) {
  const body = await readBody(c);
  const preview = await previewByFilter(c, action, body);
  if (preview) return preview;
  requireConfirmation(body.confirm);
  if (readAtomicity(body) === 'atomic') {
    const answer = await allOrNoneByFilter(c, action, body);
    const headers = answer.replayed ? REPLAYED : {};
    const summary = { ...allOrNoneSummary(action, answer), ...notApplied(c, answer) };
    return json(c, summary, answer.applied ? 200 : 422, headers);
  }
  const { summary, headers } = await operate(c, action, body);
  return answerSummary(c, summary, headers);
}
