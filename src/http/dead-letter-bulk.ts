/** Operations on all dead letters that match a filter. */
import { type ApiError, invalidRequest, unsupported } from '../job/errors';
import { type JsonObject, readBody } from './body';
import type { AppContext } from './context';
import { filterFromBody, type Selection } from './filter';
import { bulkSummary, locationOf, unconfirmed } from './operation-answers';
import { operate, patience } from './operations';
import { json } from './respond';

/** Retries or deletes the dead letters that a filter names; their times are those of the discard. */
export async function deadLetters(c: AppContext, action: 'retry' | 'delete'): Promise<Response> {
  const body = await readBody(c);
  if (body.confirm !== true) throw unconfirmed();
  if (body.override !== undefined && body.override !== null) throw noOverride(body.override);
  refuseStray(c, body, ['filter', 'confirm']);
  const { filter, queues } = readDeadLetterFilter(body, Date.now());
  const summary = await operate(c.env, action, filter, queues, patience(c));
  return json(c, bulkSummary(action, summary), summary.done ? 200 : 202, locationOf(summary));
}

/**
 * Refuses members and query parameters that would be overlooked: a condition in the wrong place must not turn an operation
 * on some jobs into one on all.
 * @throws {ApiError} 400 naming the first one
 */
export function refuseStray(c: AppContext, body: JsonObject, members: readonly string[], query: string[] = []): void {
  const member = Object.keys(body).find((name) => !members.includes(name));
  if (member !== undefined) {
    throw invalidRequest(member, `${member}: is not known here; conditions go into ${members.join(' or ')}.`);
  }
  const parameter = Object.keys(c.req.query()).find((name) => ![...query, 'wait', 'access_token'].includes(name));
  if (parameter !== undefined) throw invalidRequest(parameter, `${parameter}: is not a parameter of this operation.`);
}

/** What is changed about a job is changed about one at a time. */
function noOverride(override: unknown): ApiError {
  const [member] = typeof override === 'object' && override !== null ? Object.keys(override) : [];
  const field = member === undefined ? 'override' : `override.${member}`;
  return unsupported(
    `${field} is not offered for many dead letters at once: use POST /ojs/v1/dead-letter/:id/retry for each.`,
    { field },
  );
}

function readDeadLetterFilter(body: JsonObject, now: number) {
  // All of them is a fair wish here, and it is confirmed.
  const given = body.filter === undefined || body.filter === null ? {} : body.filter;
  const everything = typeof given === 'object' && Object.keys(given).length === 0;
  const { filter, queues }: Selection = everything ? { filter: {} } : filterFromBody(given, now);
  const { created, ...rest } = filter;
  const ended = { ...created, ...rest.ended };
  return {
    filter: {
      ...rest,
      states: ['discarded' as const],
      dead: true,
      ...(Object.keys(ended).length > 0 && { ended }),
    },
    queues,
  };
}
