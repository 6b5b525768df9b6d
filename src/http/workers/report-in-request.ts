/** A report in a request of its own: the parts in its path and headers besides its body. */
import type { AttemptName, EndReport } from '../../job/attempt/outcome';
import { type ReportKind, readAck, readAttempt, readNack } from '../../job/attempt/read-report';
import type { AppContext } from '../context';
import type { JsonObject } from '../request/body';

const DELIVERY_HEADER = 'X-OJS-Delivery-ID';

const namingOf = (c: AppContext) => ({ pathId: c.req.param('id'), delivery: c.req.header(DELIVERY_HEADER) });

/** The attempt that a request is about. @throws {ApiError} 400, 404 */
export const attemptIn = (c: AppContext, body: JsonObject, kind: ReportKind): AttemptName =>
  readAttempt(body, namingOf(c), kind);

/** @throws {ApiError} 400, 404, 413 */
export const ackIn = (c: AppContext, body: JsonObject): EndReport => readAck(body, namingOf(c), Date.now());

/** @throws {ApiError} 400, 404 */
export const nackIn = (c: AppContext, body: JsonObject): EndReport => readNack(body, namingOf(c), Date.now());
