/** Enqueues many jobs: `partial` takes those that can be accepted and reports on each; `atomic` takes all or none. */

import { enqueueAllOrNone, enqueueEach, ROLLED_BACK } from '../../across/enqueue-many';
import { Telling } from '../../across/receipts';
import { readConfig } from '../../config';
import type { BulkEnqueued, BulkEntry } from '../../contract/bulk';
import { entriesIn } from '../../job/envelope/batch';
import { readObject } from '../../job/envelope/fields';
import { parseParts } from '../../job/envelope/json';
import { MAX_BATCH_SIZE } from '../../job/envelope/names';
import { type ParseContext, type ParsedJob, parseJob, withFingerprint } from '../../job/envelope/parse';
import { ApiError, duplicate, type ErrorData, eventualOutcomeOf, type Outcome, valuesOf } from '../../job/errors';
import { refuseTooMuch } from '../../job/message';
import { type Answer, type AppContext, json } from '../context';
import { renderError } from '../errors';
import { warningsOf } from '../jobs/render';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../request/body';
import { REPLAYED, readIdempotency } from '../request/idempotency';
import { readAtomicity } from '../request/many-jobs';
import { mayCreate, withinRate } from '../request/new-queues';
import { parseContext } from '../request/parse-context';
import { MINIMAL, prefersMinimal } from '../request/prefer';

const MAX_SIZE = { 'X-OJS-Max-Batch-Size': String(MAX_BATCH_SIZE) };

export async function enqueueBulk(c: AppContext): Promise<Answer<BulkEnqueued, 201 | 207 | 422>> {
  const { retryVariables: variables } = readConfig(c.env);
  const { body, jobs } = await readBulk(c);
  const enqueueMany = readAtomicity(body) === 'atomic' ? enqueueAllOrNone : enqueueEach;
  const idempotency = await readIdempotency(c, body, body.idempotency_key);
  const ctx = parseContext(c);
  const entries = await readEntries(jobs, ctx);
  const readable = entries.flatMap((entry, index) => (entry.ok ? [{ ...entry.value, index }] : []));
  refuseTooMuch(readable.map(({ job }) => job));
  await mayCreate(c, readable, true);
  await withinRate(c, readable);
  const { outcomes, replayed } = await enqueueMany(c.env, entries, idempotency);
  const brief = prefersMinimal(c);
  const telling = new Telling(variables, brief, replayed ? ctx.trace : undefined);
  const items = outcomes.map((outcome, index): BulkEntry => {
    if (!outcome.ok)
      return {
        index,
        status: outcome.error.code === 'duplicate' ? 'duplicate' : 'failed',
        error: errorOf(outcome.error),
      };
    const entry = entries[index];
    const parsed = entry?.ok ? entry.value : undefined;
    const job = telling.envelope(outcome.value, parsed);
    const { deduplicated, accumulated } = outcome.value;
    return { index, status: deduplicated ? 'duplicate' : accumulated ? 'accumulated' : 'created', job };
  });
  const succeeded = outcomes.filter(({ ok }) => ok).length;
  const failed = outcomes.length - succeeded;
  const error = succeeded === 0 ? { error: renderError(whyNone(outcomes), c) } : {};
  const warned = warningsOf(valuesOf(outcomes), ctx.unknown);
  return json(
    c,
    { total: outcomes.length, succeeded, failed, items, ...error, ...warned.members },
    failed === 0 ? 201 : succeeded === 0 ? 422 : 207,
    {
      'X-OJS-Batch-Size': String(outcomes.length),
      ...MAX_SIZE,
      ...(brief && MINIMAL),
      ...(replayed && REPLAYED),
      ...warned.headers,
    },
  );
}

/** The body and its entries. One that is too large is refused with what would fit. */
async function readBulk(c: AppContext): Promise<{ body: JsonObject; jobs: unknown[] }> {
  try {
    const body = await readBody(c, MAX_BATCH_BYTES, parseParts);
    return { body, jobs: entriesIn(body, 'jobs') };
  } catch (error) {
    if (!(error instanceof ApiError) || error.data.status !== 413) throw error;
    const { field, actual_bytes } = error.data.details ?? {};
    const size = field === 'jobs' ? { 'X-OJS-Batch-Size': String(actual_bytes) } : {};
    throw new ApiError({ ...error.data, headers: { ...error.data.headers, ...size, ...MAX_SIZE } });
  }
}

/** Reads every entry; a wrong one keeps its error. A repeated id belongs to the first entry. */
function readEntries(jobs: readonly unknown[], ctx: ParseContext): Promise<Outcome<ParsedJob>[]> {
  const seen = new Set<string>();
  return Promise.all(
    jobs.map((entry, index) =>
      eventualOutcomeOf(async () => {
        const path = `jobs[${index}]`;
        const parsed = parseJob(readObject(entry, path), { ...ctx, path });
        const { id } = parsed.job;
        if (id !== undefined && seen.has(id)) throw duplicate(id, 'available');
        if (id !== undefined) seen.add(id);
        return withFingerprint(parsed);
      }, index),
    ),
  );
}

/** Why nothing was enqueued: the first entry with an error of its own. */
function whyNone(outcomes: readonly Outcome<unknown>[]): ErrorData {
  const refused = outcomes.flatMap((outcome, index) => (outcome.ok ? [] : [{ index, error: outcome.error }]));
  const { index, error } = (refused.find(({ error: { type } }) => type !== ROLLED_BACK.type) ?? refused[0]) as Refused;
  const message = `Nothing was enqueued. Entry ${index}: ${error.message}`;
  return { ...error, message, details: { ...error.details, index } };
}

interface Refused {
  index: number;
  error: ErrorData;
}

function errorOf(error: ErrorData) {
  const { code, message, retryable, details } = error;
  return { code, type: error.type ?? code, message, retryable, ...(details && { details }) };
}
