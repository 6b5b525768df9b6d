import type { Env } from '../config';
import { errorDataOf } from '../durable/platform-errors';
import type { AttemptOutcome } from '../job/attempt/outcome';
import { type ErrorData, notFound, type Outcome, unavailable } from '../job/errors';
import type { JobView } from '../job/record';
import { bytesOf, grouped, MAX_ANSWER_BYTES } from '../job/size';
import { queueObject } from '../rpc/stubs';
import type { ClaimRequest, Report, Reported, ReportedAndClaimed } from '../rpc/workers';
import { askByHome, isMissing } from './locate';

export interface Following {
  queue: string;
  request: ClaimRequest;
}

/**
 * Passes each report to its job's queue, in order, sharing transactions; an unreachable queue fails only its own.
 * @param entries an error: already refused @param following goes along with the first reports, if for their queue
 * @param sent called once the first are on their way, or cannot be; `claimed` is absent when the claim did not go along
 * @returns an outcome for each, in order
 */
export async function takeReports(
  env: Env,
  entries: readonly Outcome<Report>[],
  following?: Following,
  sent: (claimed?: Promise<Outcome<JobView[]>>) => void = () => undefined,
): Promise<Outcome<Reported>[]> {
  const outcomes: (Outcome<Reported> | undefined)[] = entries.map((entry) => (entry.ok ? undefined : entry));
  const places = placesOf(entries);
  const isOpen = (place: number) => outcomes[place] === undefined || isMissing(outcomes[place]);
  let along = following;
  const ask = async (queue: string, ids: readonly string[]) => {
    const wanted = ids.flatMap((id) => places.get(id) ?? []).sort((a, b) => a - b);
    const reportAt = (place: number) => (entries[place] as { ok: true; value: Report }).value;
    for (const group of grouped(wanted, (place) => bytesOfReport(reportAt(place)), MAX_ANSWER_BYTES)) {
      const claim = along?.queue === queue ? along.request : undefined;
      along = undefined;
      // The answers of all queues are in memory together.
      const mostTold = Math.floor((MAX_ANSWER_BYTES * group.length) / entries.length);
      const answer = reportTo(env, queue, group.map(reportAt), claim, mostTold);
      sent(claim && answer.then(({ claimed }) => claimed));
      const { told } = await answer;
      // If queues disagree about a job, the owning queue's answer wins.
      for (const [at, place] of group.entries()) if (isOpen(place)) outcomes[place] = told[at];
    }
  };
  let failure: ErrorData | undefined;
  try {
    const isFound = (id: string) => places.get(id)?.every((place) => !isOpen(place)) === true;
    await askByHome(env, [...places.keys()], undefined, { ask, isFound, width: 1 });
  } catch (error) {
    failure = failureOf(error);
  }
  sent();
  return outcomes.map((outcome, place) => {
    if (outcome && !(failure && isMissing(outcome))) return outcome;
    const entry = entries[place] as { ok: true; value: Report };
    return { ok: false, error: failure ?? notFound('job', entry.value.job_id).data };
  });
}

function placesOf(entries: readonly Outcome<Report>[]): Map<string, number[]> {
  const places = new Map<string, number[]>();
  for (const [place, entry] of entries.entries()) {
    if (!entry.ok) continue;
    const { job_id } = entry.value;
    const known = places.get(job_id);
    if (known) known.push(place);
    else places.set(job_id, [place]);
  }
  return places;
}

/** @param claim follows them. @param mostTold bytes of recorded steps in the answer */
async function reportTo(
  env: Env,
  queue: string,
  reports: Report[],
  claim: ClaimRequest | undefined,
  mostTold: number,
): Promise<ReportedAndClaimed> {
  try {
    if (claim) return await queueObject(env, queue).reportAndClaim(reports, claim, mostTold);
    return { told: await queueObject(env, queue).report(reports, mostTold), claimed: NOTHING };
  } catch (error) {
    const outcome = { ok: false as const, error: failureOf(error) };
    return { told: reports.map(() => outcome), claimed: outcome };
  }
}

const NOTHING: Outcome<JobView[]> = { ok: true, value: [] };

/** Why the reports of a queue were not taken: its refusal, or that it could not be reached. */
function failureOf(error: unknown): ErrorData {
  const told = errorDataOf(error);
  if (!told) console.error('tocsin: reports could not be handed to a queue:', error);
  return told ?? unavailable('The queue of the job could not be reached.').data;
}

function bytesOfReport(report: Report): number {
  if (report.kind === 'progress') {
    return 512 + bytesOf(JSON.stringify([report.message, report.data])) + bytesOf(report.checkpoint ?? '');
  }
  if (report.kind === 'checkpoint') return 512 + bytesOf(report.content);
  if (report.kind === 'step') return 512 + bytesOf(report.record);
  const { log, steps = '' } = report;
  return 512 + bytesOf(bulkOf(report)) + bytesOf(steps) + (log ? bytesOf(JSON.stringify(log)) : 0);
}

function bulkOf(outcome: AttemptOutcome): string {
  if (outcome.kind === 'completed') return outcome.result ?? '';
  if (outcome.kind === 'failed') return JSON.stringify(outcome.error);
  return JSON.stringify(outcome.kind === 'snoozed' ? [outcome.snooze, outcome.runs] : outcome.release);
}
