/** Many reports in one request. */

import { takeReports } from '../../across/hand-out-reports';
import type { ReportOutcomes } from '../../contract/pull';
import { readReports, readWorkerId } from '../../job/attempt/read-report';
import { renderOutcomes } from '../../job/attempt/render-reported';
import { optional } from '../../job/envelope/fields';
import { parseParts } from '../../job/envelope/json';
import { invalidRequest } from '../../job/errors';
import { type AppContext, json } from '../context';
import { MAX_BATCH_BYTES, readBody } from '../request/body';

/** Answers `POST /workers/report`: 207 when some reports were refused. */
export async function reportMany(c: AppContext) {
  const body = await readBody(c, MAX_BATCH_BYTES, parseParts);
  if (body.reports === undefined) throw invalidRequest('reports', 'reports is required.');
  const entries = readReports(body.reports, 'reports', optional(body, 'worker_id', readWorkerId), Date.now());
  const told: ReportOutcomes = renderOutcomes(entries, await takeReports(c.env, entries));
  return json(c, told, told.failed > 0 ? 207 : 200);
}
