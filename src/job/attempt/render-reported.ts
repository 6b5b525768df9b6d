import { defined, given } from '../envelope/fields';
import type { ErrorData, Outcome } from '../errors';
import type { JobState } from '../states';
import { formatInstant } from '../time';
import type { JobStep } from '../wire';
import type { Report } from './outcome';

/** What a report has led to: where the job stands, and nothing that it carries. Times in epoch ms. */
export interface Reported {
  state: JobState;
  attempt: number;
  due_at?: number;
  retry_delay_ms?: number;
  completed_at?: number;
  discarded_at?: number;
  /** What is on record of it after a report of progress, 0 … 1. */
  progress?: number;
  /** JSON text of what was on record of a step already; that has won. */
  step?: string;
  /** True: `step` is left out because the answer has no room for it. */
  step_omitted?: true;
}

/** What each report came to, in order, and how many were taken. */
export function renderOutcomes(entries: readonly Outcome<Report>[], outcomes: readonly Outcome<Reported>[]) {
  const items = outcomes.map((outcome, index) => {
    const entry = entries[index];
    const named = { index, ...defined({ job_id: jobOf(entry) }) };
    const refusal = outcome.ok ? refusalIn(entry) : outcome.error;
    return refusal || !outcome.ok
      ? { ...named, status: 'failed' as const, error: renderRefusal(refusal as ErrorData) }
      : { ...named, status: 'done' as const, ...renderReported(outcome.value) };
  });
  const succeeded = items.filter(({ status }) => status === 'done').length;
  return { total: items.length, succeeded, failed: items.length - succeeded, items };
}

function jobOf(entry: Outcome<Report> | undefined): string | undefined {
  const job_id = entry?.ok ? entry.value.job_id : entry?.error.details?.job_id;
  return typeof job_id === 'string' ? job_id : undefined;
}

const refusalIn = (entry: Outcome<Report> | undefined): ErrorData | undefined =>
  entry?.ok && 'refusal' in entry.value ? entry.value.refusal : undefined;

function renderReported(reported: Reported) {
  const { state, attempt, progress, step_omitted, retry_delay_ms } = reported;
  const due = given(reported.due_at, formatInstant);
  return defined({
    state,
    attempt,
    progress,
    step: given(reported.step, (text) => JSON.parse(text) as JobStep),
    step_omitted,
    retry_delay_ms,
    next_attempt_at: state === 'retryable' ? due : undefined,
    scheduled_at: state === 'scheduled' ? due : undefined,
    completed_at: given(reported.completed_at, formatInstant),
    discarded_at: given(reported.discarded_at, formatInstant),
  });
}

/** An error beside other answers, with the status and the pause that one of its own has in its head. */
export function renderRefusal({ status, code, type, message, retryable, details, headers }: ErrorData) {
  const after = headers?.['Retry-After'];
  const retry_after_ms = after === undefined ? undefined : Number(after) * 1000;
  return { status, code, type: type ?? code, message, retryable, ...defined({ details, retry_after_ms }) };
}
