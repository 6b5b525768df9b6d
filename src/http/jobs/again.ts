/** The same job once more: with changes, or as a new one. Both are read like an enqueue. */

import { parseExactly } from '../../job/envelope/exact';
import { defined, optional, parseObject, readObject, readQueueName } from '../../job/envelope/fields';
import { parseEnvelope } from '../../job/envelope/json';
import { MAX_ENVELOPE_BYTES } from '../../job/envelope/names';
import { IN_OPTIONS, parseJob, withFingerprint } from '../../job/envelope/parse';
import { invalidRequest, unsupported } from '../../job/errors';
import { notKnown } from '../../job/near-miss';
import { factsOf, optionsThat } from '../../job/options';
import type { JobBody, JobView } from '../../job/record';
import { isSignalUrl } from '../../job/signal-url';
import { parseSteps, readStepName, stepsBefore, stepsOfEntries } from '../../job/steps';
import { forFork } from '../../job/undo';
import { UNDO_OF } from '../../job/undo-names';
import { withFlatCopy } from '../../ojs/answers';
import type { Edit } from '../../rpc/queue';
import { type AppContext, json } from '../context';
import { type JsonObject, readOptionalBody } from '../request/body';
import { readIdempotency } from '../request/idempotency';
import { parseContext } from '../request/parse-context';
import { callJob, pathParam } from '../request/path';
import { refuseRedacted } from '../request/redacted';
import { enqueueParsed } from './enqueue';
import { readPatch } from './patch';
import { envelopeOf, warningsOf } from './render';

/** The options of a job that a new one like it has. */
const CLONED = optionsThat('stored').filter((name) => !factsOf(name).moment);

/** The member of `meta` that says which job a clone was made of. */
const CLONED_FROM = 'cloned_from';

/** Members of `meta` that belong to one job. */
const OF_ITS_REQUEST = ['traceparent', 'tracestate', UNDO_OF];

/** Retries a job, perhaps with other arguments, `meta`, place or policy. @throws {ApiError} 400, 404, 409, 413, 422 */
export async function retryEdited(c: AppContext): Promise<JobView> {
  const body = (await readOptionalBody(c, MAX_ENVELOPE_BYTES, parseEnvelope)) ?? {};
  refuseRedacted(c, body, 'args');
  const { args, meta, from, ...rest } = body;
  const given = defined({ args: args ?? undefined, meta: meta ?? undefined });
  const change = Object.keys(rest).length > 0 ? readPatch(rest, Date.now()) : undefined;
  const edit = Object.keys(given).length > 0 ? await readEdit(c, given) : undefined;
  const options = { deadLetterOnly: false, ...defined({ edit, change }) };
  if (from === undefined) return callJob(c, (queue, id) => queue.redrive(id, options));
  const step = readStepName(from, 'from');
  return callJob(c, (queue, id) => queue.restart(id, step, options));
}

/** What an operator should know whose job starts over. */
const STARTS_OVER = 'The steps of this job were undone, so it starts over: no step is on record any more.';

/** Answers the job that a retry has started again. */
export function answerRetried(c: AppContext, view: JobView) {
  const { members, headers } = warningsOf(view.starts_over ? [STARTS_OVER] : []);
  return json(c, withFlatCopy(envelopeOf(c, view), members), 200, headers);
}

async function readEdit(c: AppContext, given: JsonObject): Promise<Edit> {
  const view = await callJob(c, (queue, id) => queue.get(id));
  const { trace: _, ...context } = parseContext(c);
  const { job, body } = await withFingerprint(parseJob({ ...asEnqueued(view), ...given }, context));
  const before = parseObject(view.record.body)?.fingerprint;
  if (job.unique?.scope === 'global' && job.unique.fingerprint !== before) {
    throw unsupported(
      'This changes the key that makes the job unique across queues, which is decided at enqueue.',
      { field: 'args' },
      'Clone the job instead: POST /ojs/v1/admin/jobs/:id/clone.',
    );
  }
  return defined({
    args: 'args' in given ? JSON.stringify(body.args) : undefined,
    meta: 'meta' in given ? JSON.stringify(body.meta) : undefined,
    fingerprint: job.unique?.fingerprint,
  });
}

/** Enqueues a new job like this one. @throws {ApiError} 404 when there is no such job, else as an enqueue */
export async function cloneJob(c: AppContext) {
  const body = (await readOptionalBody(c, MAX_ENVELOPE_BYTES, parseEnvelope)) ?? {};
  refuseRedacted(c, body, 'args');
  const idempotency = await readIdempotency(c, body, body.idempotency_key);
  const { from, ...changes } = body;
  const view = await callJob(c, (queue, id) => queue.get(id));
  const context = parseContext(c);
  const parsed = await withFingerprint(parseJob(cloneOf(view, changes, pathParam(c, 'id')), context));
  if (from !== undefined) {
    const recorded = await callJob(c, (queue, id) => queue.steps(id));
    const before = stepsBefore(parseSteps(recorded), readStepName(from, 'from'), true);
    const entries = Object.entries(forFork(before, view.record.undo !== undefined));
    // Its signal URLs are the other job's.
    const steps = stepsOfEntries(entries.filter(([name, { result }]) => !isSignalUrl(name, result)));
    const large = Object.keys(steps).filter((name) => steps[name]?.result_bytes !== undefined);
    parsed.job.steps = JSON.stringify(steps);
    if (large.length > 0) parsed.job.parts = await callJob(c, (queue, id) => queue.stepParts(id, large));
  }
  return enqueueParsed(c, parsed, context, idempotency);
}

/** The job to enqueue. Given options replace the job's own; null leaves one out. */
function cloneOf(view: JobView, body: JsonObject, id: string): JsonObject {
  const { args, meta, queue, options, idempotency_key: _, ...others } = body;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw invalidRequest(unknown, `${unknown} ${notKnown(unknown, ['args', 'meta', 'queue', 'options', 'from'])}`);
  const changed = optional(body, 'options', readObject) ?? {};
  const known: readonly string[] = IN_OPTIONS;
  const wrong = Object.keys(changed).find((name) => !known.includes(name));
  if (wrong !== undefined) throw invalidRequest(`options.${wrong}`, `options.${wrong} is not an option of a job.`);
  const own = asEnqueued(view);
  for (const name of Object.keys(changed)) delete own[name];
  const ownMeta = Object.entries(own.meta as JsonObject).filter(([name]) => !OF_ITS_REQUEST.includes(name));
  const chosen = optional(body, 'meta', readObject) ?? optional(changed, 'meta', readObject, 'options.');
  return {
    ...own,
    ...defined({ args: args ?? undefined, queue: optional(body, 'queue', readQueueName) }),
    options: { ...changed, meta: { ...(chosen ?? Object.fromEntries(ownMeta)), [CLONED_FROM]: id } },
  };
}

/** The job as its producer may have enqueued it: immediate, and without an id of its own. */
function asEnqueued({ record }: JobView): JsonObject {
  const stored = parseObject(record.body, parseExactly) as JobBody | undefined;
  if (!stored) throw unsupported('The stored job cannot be read.', { job_id: record.id });
  const { type, args, meta, extra } = stored;
  const own: JsonObject = { ...extra, type, args, meta, queue: record.queue, priority: record.priority };
  for (const name of CLONED) if (stored[name] !== undefined) own[name] = stored[name];
  return own;
}
