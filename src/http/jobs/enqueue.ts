/** Enqueuing: one job, or a batch of which all are accepted or none. */

import * as across from '../../across/enqueue';
import { renderBatch, Telling, writeBatch } from '../../across/receipts';
import { readConfig } from '../../config';
import type { Warned } from '../../contract/common';
import type { Accumulated, BatchAnswer, Deduplicated, Enqueued, JobAnswer } from '../../contract/jobs';
import { parseEvent } from '../../job/cloud-event';
import { entriesIn, parseEach } from '../../job/envelope/batch';
import { parseEnvelope, parseParts } from '../../job/envelope/json';
import { MAX_ENVELOPE_BYTES } from '../../job/envelope/names';
import { type ParseContext, type ParsedJob, parseJob, withFingerprint } from '../../job/envelope/parse';
import { invalidRequest } from '../../job/errors';
import { refuseTooMuch } from '../../job/message';
import { flatCopyText, withFlatCopy } from '../../ojs/answers';
import type { IdempotencyKey } from '../../rpc/receipts';
import { type Answer, type AppContext, json, jsonText } from '../context';
import { MAX_BATCH_BYTES, readBody } from '../request/body';
import { eventFormOf, readEvent, readEvents } from '../request/cloud-events';
import { REPLAYED, readIdempotency } from '../request/idempotency';
import { mayCreate, withinRate } from '../request/new-queues';
import { parseContext } from '../request/parse-context';
import { MINIMAL, prefersMinimal } from '../request/prefer';
import { bindToToken } from '../tokens/bearer';
import { limitHeaders, warningsOf } from './render';

export async function enqueueOne(c: AppContext) {
  const bounds = c.get('caller')?.token;
  const form = bounds ? undefined : eventFormOf(c);
  if (form === 'batched') return enqueueBatch(c);
  const body = form ? await readEvent(c, form) : await readBody(c, MAX_ENVELOPE_BYTES, parseEnvelope);
  if (bounds) bindToToken(body, bounds);
  const idempotency = await readIdempotency(c, body);
  const ctx = parseContext(c);
  const parsed = await withFingerprint(form ? parseEvent(body, ctx) : parseJob(body, ctx));
  return enqueueParsed(c, parsed, ctx, idempotency);
}

/** Enqueues a job that was read, and answers it. @param ctx the context of its reading */
export async function enqueueParsed(
  c: AppContext,
  parsed: ParsedJob,
  ctx: ParseContext,
  idempotency: IdempotencyKey | undefined,
): Promise<Answer<Enqueued, 201> | Answer<Deduplicated | Accumulated>> {
  const { retryVariables: variables } = readConfig(c.env);
  await mayCreate(c, [parsed]);
  await withinRate(c, [parsed]);
  const { job: view, replayed } = await across.enqueueOne(c.env, parsed, idempotency);
  const warned = warningsOf([view], ctx.unknown);
  const { deduplicated, accumulated } = view;
  const isNew = !deduplicated && !accumulated;
  const brief = isNew && prefersMinimal(c);
  const headers = {
    ...(isNew && { Location: `/ojs/v1/jobs/${view.record.id}` }),
    ...(brief && MINIMAL),
    ...(replayed ? REPLAYED : limitHeaders(c, [view])),
    ...warned.headers,
  };
  const telling = new Telling(variables, brief, replayed ? ctx.trace : undefined);
  if (isNew && !brief && !replayed && !c.get('redact') && parsed.body.extra === undefined) {
    return jsonText(c, flatCopyText(telling.text(view, parsed), warned.members), 201, headers);
  }
  if (accumulated) {
    const job = telling.accumulated(view);
    return json(c, { job, ...job, ...warned.members }, 200, headers);
  }
  if (brief) return json(c, { ...telling.receipt(view, parsed), ...warned.members }, 201, headers);
  const answer: JobAnswer & Warned = withFlatCopy(telling.whole(view, parsed), warned.members);
  return deduplicated
    ? json(c, { ...answer, deduplicated: true as const }, 200, headers)
    : json(c, answer, 201, headers);
}

/** POST /jobs/batch: jobs, or CloudEvents. */
export async function enqueueBatch(c: AppContext): Promise<Answer<BatchAnswer, 201>> {
  const { retryVariables: variables } = readConfig(c.env);
  const form = eventFormOf(c);
  if (form && form !== 'batched') throw invalidRequest('Content-Type', 'A single CloudEvent is sent to /jobs.');
  const body = form ? { events: await readEvents(c) } : await readBody(c, MAX_BATCH_BYTES, parseParts);
  const idempotency = await readIdempotency(c, body);
  const ctx = parseContext(c);
  const entries = form
    ? parseEach(entriesIn(body, 'events'), '', parseEvent, ctx)
    : parseEach(entriesIn(body, 'jobs'), 'jobs', parseJob, ctx);
  const parsed = await Promise.all(entries.map(withFingerprint));
  refuseTooMuch(parsed.map(({ job }) => job));
  await mayCreate(c, parsed, true);
  await withinRate(c, parsed);
  const { jobs: views, replayed } = await across.enqueueAll(c.env, parsed, { idempotency });
  const brief = prefersMinimal(c);
  const warned = warningsOf(views, ctx.unknown);
  const applied = { ...(replayed ? REPLAYED : limitHeaders(c, views)), ...(brief && MINIMAL) };
  const headers = { ...applied, ...warned.headers };
  if (!brief && !replayed && !c.get('redact')) {
    return jsonText(c, writeBatch(views, parsed, variables, warned.members), 201, headers);
  }
  const telling = new Telling(variables, brief, replayed ? ctx.trace : undefined);
  const answer = renderBatch(views, (view, index) => telling.envelope(view, parsed[index]));
  return json(c, { ...answer, ...warned.members }, 201, headers);
}
