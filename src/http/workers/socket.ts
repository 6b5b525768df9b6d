/** The socket of a worker that pulls: checked here, and held by the object of its queue. */
import { readQueueName } from '../../job/envelope/fields';
import { invalidRequest, unwrap } from '../../job/errors';
import { readConnection, SUBPROTOCOL } from '../../job/worker/socket';
import { askToConnect } from '../../rpc/worker-socket';
import type { AppContext } from '../context';
import { creatorOf } from '../request/new-queues';
import { offeredProtocols, switched } from '../request/upgrade';

/** Answers `GET /workers/socket`. @throws {ApiError} 426 when it is not an upgrade; 400, 413 */
export async function connectWorker(c: AppContext) {
  const offered = offeredProtocols(c, 'POST /ojs/v1/workers/fetch takes jobs over plain HTTP.');
  if (!offered.includes(SUBPROTOCOL)) {
    throw invalidRequest('Sec-WebSocket-Protocol', `Offer the subprotocol ${SUBPROTOCOL}.`, { offered });
  }
  const { queue, worker_id, types, handlers, ...times } = c.req.query();
  if (queue === undefined) throw invalidRequest('queue', 'queue is required.');
  const worker = readConnection({
    worker_id,
    types: types?.split(',').map((type) => type.trim()),
    handlers: handlers === undefined ? undefined : jsonIn(handlers),
    visibility_timeout_ms: numberIn(times.visibility_timeout_ms),
    default_visibility_timeout_ms: numberIn(times.default_visibility_timeout_ms),
  });
  const creator = creatorOf(c);
  const connection = { ...worker, ...(creator !== undefined && { creator }) };
  const webSocket = unwrap(await askToConnect(c.env, readQueueName(queue, 'queue'), connection));
  return switched(c, webSocket, SUBPROTOCOL);
}

const numberIn = (text: string | undefined) => (text === undefined ? undefined : Number(text));

/** The value of a JSON parameter. @returns its text if it is not JSON, which is refused as such */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
