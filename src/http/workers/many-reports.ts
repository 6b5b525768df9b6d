/** Many reports in one request, alone or with a fetch: what each came to. */
import { takeReports } from '../../across/reports';
import { defined, given, optional } from '../../job/envelope/fields';
import { type ErrorData, invalidRequest, type Outcome } from '../../job/errors';
import { formatInstant } from '../../job/time';
import { readReports, readWorkerId } from '../../job/worker/reports';
import type { Report, Reported } from '../../rpc/workers';
import { type AppContext, json } from '../context';
import { MAX_BATCH_BYTES, readBody } from '../request/body';

/** Answers `POST /workers/report`: 207 when some reports were refused. */
export async function reportMany(c: AppContext): Promise<Response> {
  const body = await readBody(c, MAX_BATCH_BYTES);
  if (body.reports === undefined) throw invalidRequest('reports', 'reports is required.');
  const entries = readReports(body.reports, 'reports', optional(body, 'worker_id', readWorkerId), Date.now());
  const told = renderOutcomes(entries, await takeReports(c.env, entries));
  return json(c, told, told.failed > 0 ? 207 : 200);
}

/** What each report came to, in order, and how many were taken. */
export function renderOutcomes(entries: readonly Outcome<Report>[], outcomes: readonly Outcome<Reported>[]) {
  const items = outcomes.map((outcome, index) => {
    const entry = entries[index];
    const named = { index, ...(entry?.ok && { job_id: entry.value.job_id }) };
    return outcome.ok
      ? { ...named, status: 'done', ...renderReported(outcome.value) }
      : { ...named, status: 'failed', error: renderRefusal(outcome.error) };
  });
  const succeeded = outcomes.filter(({ ok }) => ok).length;
  return { total: items.length, succeeded, failed: items.length - succeeded, items };
}

function renderReported({ state, attempt, due_at, retry_delay_ms, completed_at, discarded_at }: Reported) {
  const due = given(due_at, formatInstant);
  return defined({
    state,
    attempt,
    retry_delay_ms,
    next_attempt_at: state === 'retryable' ? due : undefined,
    scheduled_at: state === 'scheduled' ? due : undefined,
    completed_at: given(completed_at, formatInstant),
    discarded_at: given(discarded_at, formatInstant),
  });
}

/** As the refusal of a request of its own, with the status and the pause that such a one has in its head. */
function renderRefusal({ status, code, type, message, retryable, details, headers }: ErrorData) {
  const after = headers?.['Retry-After'];
  const retry_after_ms = after === undefined ? undefined : Number(after) * 1000;
  return { status, code, type: type ?? code, message, retryable, ...defined({ details, retry_after_ms }) };
}
