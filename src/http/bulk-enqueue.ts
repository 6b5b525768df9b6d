/**
 * Enqueuing many jobs of which some may be refused. `partial` accepts what can be accepted and says of each entry what
 * became of it; `atomic` accepts all or none.
 */
import { refuseTakenIds } from '../across/batch';
import { enqueueEntries } from '../across/enqueue';
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { readObject } from '../job/envelope/fields';
import { MAX_BATCH_SIZE } from '../job/envelope/names';
import { atIndex, type ParsedJob, parseJob, withFingerprint } from '../job/envelope/parse';
import { ApiError, duplicate, type ErrorData, invalidRequest, type Outcome } from '../job/errors';
import type { IdempotencyKey } from '../rpc/operations';
import type { EnqueuedJob } from '../rpc/queue';
import { queueObject } from '../rpc/stubs';
import { type AppContext, json } from './context';
import { renderEnqueued, usableVariables } from './jobs/render';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from './request/body';
import { REPLAYED, readIdempotency } from './request/idempotency';
import { readAtomicity } from './request/many-jobs';

const MAX_SIZE = { 'X-OJS-Max-Batch-Size': String(MAX_BATCH_SIZE) };

type EntryOutcome = Outcome<EnqueuedJob>;

/** What became of the entries. */
interface Enqueued {
  outcomes: EntryOutcome[];
  replayed: boolean;
}

/** POST /jobs/bulk. */
export async function enqueueBulk(c: AppContext): Promise<Response> {
  const variables = usableVariables(c);
  const body = await readBulkBody(c);
  const { jobs, atomicity } = readBulk(body);
  const idempotency = await readIdempotency(c, body, body.idempotency_key);
  const entries = await readEntries(jobs);
  const { outcomes, replayed } = await (atomicity === 'atomic' ? atomically : partially)(c.env, entries, idempotency);
  const items = outcomes.map((outcome, index) => {
    if (!outcome.ok) return { index, status: wordFor(outcome.error), error: errorOf(outcome.error) };
    const entry = entries[index];
    const job = renderEnqueued(outcome.value, entry?.ok ? entry.value : undefined, variables);
    return { index, status: outcome.value.deduplicated ? 'duplicate' : 'created', job };
  });
  const succeeded = outcomes.filter(({ ok }) => ok).length;
  const failed = outcomes.length - succeeded;
  return json(
    c,
    { total: outcomes.length, succeeded, failed, items },
    failed === 0 ? 201 : succeeded === 0 ? 422 : 207,
    { 'X-OJS-Batch-Size': String(outcomes.length), ...MAX_SIZE, ...(replayed && REPLAYED) },
  );
}

/** The body; one that is too large is refused with what would fit, though nobody has counted its jobs. */
async function readBulkBody(c: AppContext): Promise<JsonObject> {
  try {
    return await readBody(c, MAX_BATCH_BYTES);
  } catch (error) {
    if (!(error instanceof ApiError) || error.data.status !== 413) throw error;
    throw new ApiError({ ...error.data, headers: { ...error.data.headers, ...MAX_SIZE } });
  }
}

function readBulk(body: JsonObject): { jobs: unknown[]; atomicity: 'atomic' | 'partial' } {
  const { jobs } = body;
  if (!Array.isArray(jobs)) throw invalidRequest('jobs', 'jobs is required and must be an array.');
  if (jobs.length === 0) throw invalidRequest('jobs', 'jobs must have at least one entry.');
  if (jobs.length > MAX_BATCH_SIZE) {
    throw new ApiError({
      status: 413,
      code: 'payload_too_large',
      message: `jobs is too large: ${jobs.length} jobs, at most ${MAX_BATCH_SIZE} are accepted.`,
      retryable: false,
      details: { field: 'jobs', actual_bytes: jobs.length, max_bytes: MAX_BATCH_SIZE },
      headers: { 'X-OJS-Batch-Size': String(jobs.length), ...MAX_SIZE },
    });
  }
  return { jobs, atomicity: readAtomicity(body) };
}

/** Reads every entry; a wrong one keeps its error. An id named twice belongs to the first entry. */
async function readEntries(jobs: readonly unknown[]): Promise<Outcome<ParsedJob>[]> {
  const now = Date.now();
  const seen = new Set<string>();
  return Promise.all(
    jobs.map(async (entry, index): Promise<Outcome<ParsedJob>> => {
      try {
        const parsed = parseJob(readObject(entry, `jobs[${index}]`), { now, path: `jobs[${index}]` });
        const { id } = parsed.job;
        if (id !== undefined && seen.has(id)) throw duplicate(id, 'available');
        if (id !== undefined) seen.add(id);
        return { ok: true, value: await withFingerprint(parsed) };
      } catch (error) {
        return failureOf(error, index);
      }
    }),
  );
}

/** @throws what is no refusal */
function failureOf(error: unknown, index: number): Outcome<never> {
  const named = atIndex(error, index);
  if (named instanceof ApiError) return { ok: false, error: named.data };
  throw error;
}

async function atomically(
  env: Env,
  entries: readonly Outcome<ParsedJob>[],
  idempotency: IdempotencyKey | undefined,
): Promise<Enqueued> {
  const failures = entries.filter((entry) => !entry.ok);
  if (failures.length > 0) return { outcomes: rolledBack(entries), replayed: false };
  const parsed = entries.flatMap((entry) => (entry.ok ? [entry.value] : []));
  const home = parsed[0]?.queue;
  if (idempotency && home !== undefined) {
    const earlier = await queueObject(env, home).recall(idempotency);
    if (!earlier.ok) throw new ApiError(earlier.error);
    if (earlier.value) return { outcomes: earlier.value.jobs.map((value) => ({ ok: true, value })), replayed: true };
  }
  let outcome: Outcome<EnqueuedJob[]>;
  try {
    await refuseTakenIds(env, parsed, true);
    outcome = await enqueueEntries(env, parsed, true, idempotency);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    outcome = { ok: false, error: error.data };
  }
  if (outcome.ok) return { outcomes: outcome.value.map((value) => ({ ok: true, value })), replayed: false };
  const index = outcome.error.details?.index;
  const culprit = typeof index === 'number' ? index : parsed.length === 1 ? 0 : undefined;
  // Trouble that is none of the entries' own is the whole request's.
  if (culprit === undefined) throw new ApiError(outcome.error);
  const failure: EntryOutcome = outcome;
  return { outcomes: rolledBack(parsed.map((_, at) => (at === culprit ? failure : undefined))), replayed: false };
}

const ROLLED_BACK: ErrorData = {
  status: 422,
  code: 'conflict',
  type: 'rolled_back',
  message: 'Another entry was refused, so none was enqueued.',
  retryable: true,
};

/** Nothing was enqueued: each entry fails for its own reason, or because of the others. */
function rolledBack(entries: readonly (Outcome<unknown> | undefined)[]): EntryOutcome[] {
  return entries.map((entry) => ({ ok: false, error: entry && !entry.ok ? entry.error : ROLLED_BACK }));
}

async function partially(
  env: Env,
  entries: readonly Outcome<ParsedJob>[],
  idempotency: IdempotencyKey | undefined,
): Promise<Enqueued> {
  const outcomes: EntryOutcome[] = [];
  const byQueue = new Map<string, { index: number; parsed: ParsedJob }[]>();
  const alone: { index: number; parsed: ParsedJob }[] = [];
  await inParallel([...entries.entries()], async ([index, entry]) => {
    const taken = entry.ok ? await takenId(env, entry.value, index) : entry;
    if (!taken.ok) {
      outcomes[index] = taken;
      return;
    }
    const parsed = taken.value;
    // Uniqueness across queues is decided one by one; it has no place in the transaction of a single queue.
    if (parsed.job.unique?.scope === 'global') alone.push({ index, parsed });
    else byQueue.set(parsed.queue, [...(byQueue.get(parsed.queue) ?? []), { index, parsed }]);
  });
  if (idempotency) await refuseUsedKey(env, [...byQueue.keys()], idempotency);
  let replayed = false;
  await inParallel([...byQueue], async ([queue, group]) => {
    group.sort((a, b) => a.index - b.index);
    const jobs = group.map(({ parsed }) => parsed.job);
    const receipt = await queueObject(env, queue).enqueueEach(jobs, idempotency);
    if (!receipt.ok && receipt.error.details?.idempotency_key !== undefined) throw new ApiError(receipt.error);
    if (receipt.ok && receipt.value.replayed) replayed = true;
    for (const [at, { index }] of group.entries()) {
      outcomes[index] = receipt.ok ? (receipt.value.outcomes[at] as EntryOutcome) : receipt;
    }
  });
  for (const { index, parsed } of alone.sort((a, b) => a.index - b.index)) {
    outcomes[index] = await enqueueAlone(env, parsed, idempotency && keyOfEntry(idempotency, index));
  }
  return { outcomes, replayed };
}

/** Before anything is written: has one of the queues seen this key with another request? @throws {ApiError} 409 */
async function refuseUsedKey(env: Env, queues: readonly string[], idempotency: IdempotencyKey): Promise<void> {
  const answers = await inParallel(queues, (queue) => queueObject(env, queue).recall(idempotency));
  for (const answer of answers) if (!answer.ok) throw new ApiError(answer.error);
}

async function enqueueAlone(
  env: Env,
  parsed: ParsedJob,
  idempotency: IdempotencyKey | undefined,
): Promise<EntryOutcome> {
  if (idempotency) {
    const earlier = await queueObject(env, parsed.queue).recall(idempotency);
    if (!earlier.ok) throw new ApiError(earlier.error);
    const [job] = earlier.value?.jobs ?? [];
    if (job) return { ok: true, value: job };
  }
  const outcome = await enqueueEntries(env, [parsed], false, idempotency);
  return outcome.ok ? { ok: true, value: outcome.value[0] as EnqueuedJob } : outcome;
}

/** No key of a client has a line break, so it cannot be taken for one of these. */
function keyOfEntry({ key, hash }: IdempotencyKey, index: number): IdempotencyKey {
  return { key: `${key}\n${index}`, hash };
}

async function takenId(env: Env, parsed: ParsedJob, index: number): Promise<Outcome<ParsedJob>> {
  if (parsed.job.id === undefined) return { ok: true, value: parsed };
  try {
    await refuseTakenIds(env, [parsed], false);
    return { ok: true, value: parsed };
  } catch (error) {
    return failureOf(error, index);
  }
}

function wordFor(error: ErrorData): 'duplicate' | 'failed' {
  return error.code === 'duplicate' ? 'duplicate' : 'failed';
}

function errorOf(error: ErrorData) {
  const { code, message, retryable, details } = error;
  return { code, type: error.type ?? code, message, retryable, ...(details && { details }) };
}
