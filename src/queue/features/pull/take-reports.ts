/** Reports of workers that arrive many at a time. */
import { errorDataOf } from '../../../durable/platform-errors';
import type { Outcome } from '../../../job/errors';
import { isUuidV7 } from '../../../job/ids';
import type { Report, Reported } from '../../../rpc/workers';
import type { Host } from '../../feature';
import { type AnswerRoom, reportEach } from '../../jobs/report-each';
import { keyOf } from '../../read/find';

/**
 * Takes reports, in order, in as few transactions as their work allows. If that reveals a defect, each is taken alone:
 * then only reports that cannot be written fail.
 * @param room for recorded steps
 * @returns an outcome for each
 */
export async function takeReports(
  host: Host,
  reports: readonly Report[],
  room: AnswerRoom,
): Promise<Outcome<Reported>[]> {
  const told: Outcome<Reported>[] = [];
  while (told.length < reports.length) told.push(...(await takeSome(host, reports.slice(told.length), room)));
  return told;
}

/** @returns the outcomes of the first of them, at least one */
async function takeSome(host: Host, reports: readonly Report[], room: AnswerRoom): Promise<Outcome<Reported>[]> {
  try {
    return await inOne(host, reports, room);
  } catch (error) {
    if (reports.length > 1) {
      console.error('tocsin: reports are written one by one because together they could not be:', error);
      return (await Promise.all(reports.map((report) => takeSome(host, [report], room)))).flat();
    }
    console.error(`tocsin: the report about job ${reports[0]?.job_id} could not be written:`, error);
    return [{ ok: false, error: errorDataOf(error) ?? NOT_WRITTEN }];
  }
}

const NOT_WRITTEN = {
  ...({ status: 500, code: 'backend_error', retryable: true } as const),
  message: 'The report could not be written.',
};

async function inOne(
  { q, about, request, random }: Host,
  reports: readonly Report[],
  room: AnswerRoom,
): Promise<Outcome<Reported>[]> {
  about((state) => reports.map(({ job_id }) => (isUuidV7(job_id) ? keyOf(state, job_id) : undefined)));
  const outcome = await request((now) => reportEach(q, reports, now, random, room));
  return outcome.ok ? outcome.value : reports.map(() => outcome);
}
