/** The properties of a request that apply to every job in it. */
import { readTargetUrl } from '../../config';
import type { ParseContext } from '../../job/envelope/parse';
import { readTrace } from '../../job/trace';
import { UnknownMembers } from '../../job/unknown-members';
import type { AppContext } from '../context';
import { boundsOf } from './bounds';

export function parseContext(c: AppContext): ParseContext {
  const trace = readTrace(c.req.header('traceparent'), c.req.header('tracestate'));
  const unknown = new UnknownMembers();
  const bounds = boundsOf(c);
  const given = { ...(trace && { trace }), ...(bounds && { bounds }) };
  return { now: Date.now(), readTarget: readTargetUrl(c.env), unknown, ...given };
}
