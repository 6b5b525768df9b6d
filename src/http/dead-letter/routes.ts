/** Discarded jobs that wait for a human: one by one. Many at once: `bulk.ts`. */
import { defined, optional, readObject, readQueueName } from '../../job/envelope/fields';
import { readMeta } from '../../job/envelope/parse';
import { unsupported } from '../../job/errors';
import { checkRetryLayer } from '../../job/retry/validate';
import { type AppContext, json } from '../context';
import { envelopeOf } from '../jobs/render';
import { type JsonObject, readOptionalBody } from '../request/body';
import { callJob } from '../request/path';
import { del, get, post, type Route } from '../route';
import { actOnDeadLetters, purgeDeadLetters } from './bulk';
import { listDeadLetters, showStats } from './list';

/** Routes below `/ojs/v1`. */
export const deadLetterRoutes: readonly Route[] = [
  get('/dead-letter', (c) => listDeadLetters(c)),
  get('/dead-letter/stats', showStats),
  get('/dead-letter/:id', async (c) => {
    return json(c, { job: envelopeOf(c, await callJob(c, (queue, id) => queue.deadLetter(id))) });
  }),
  post('/dead-letter/retry', (c) => actOnDeadLetters(c, 'retry'), { takesIdempotencyKey: true }),
  del('/dead-letter', (c) => actOnDeadLetters(c, 'delete'), { scope: 'admin:purge', takesIdempotencyKey: true }),
  post('/dead-letter/purge', purgeDeadLetters, { scope: 'admin:purge', takesIdempotencyKey: true }),
  post('/dead-letter/:id/retry', retryDeadLetter),
  del('/dead-letter/:id', async (c) => json(c, { deleted: true, ...(await deleteDeadLetter(c)) })),
];

/** Gives a dead letter another life, in its queue or in the one that the override names. */
export async function retryDeadLetter(c: AppContext): Promise<Response> {
  const override = readOverride((await readOptionalBody(c)) ?? {});
  const view = await callJob(c, (queue, id, name) => {
    const { queue: target, ...change } = override ?? {};
    if (target !== undefined && target !== name) return queue.moveDeadLetter(id, { target, override: change });
    return queue.redrive(id, { deadLetterOnly: true, ...(override && { override: change }) });
  });
  return json(c, { job: envelopeOf(c, view) });
}

/** Removes a dead letter for good. */
export function deleteDeadLetter(c: AppContext): Promise<{ job_id: string }> {
  return callJob(c, (queue, id) => queue.deleteDeadLetter(id));
}

const OVERRIDABLE = ['queue', 'meta', 'retry'];

/** What to change about the job before it runs again. @throws {ApiError} 400, 413, 422 */
function readOverride(body: JsonObject) {
  const given = optional(body, 'override', readObject);
  if (given === undefined) return undefined;
  const unknown = Object.keys(given).find((name) => !OVERRIDABLE.includes(name));
  if (unknown !== undefined) {
    throw unsupported(`override.${unknown} cannot be changed.`, { field: `override.${unknown}` });
  }
  return defined({
    queue: optional(given, 'queue', readQueueName, 'override.'),
    meta: optional(given, 'meta', readMeta, 'override.'),
    retry: optional(given, 'retry', (value, field) => checkRetryLayer(value, field), 'override.'),
  });
}
