/** What a request says about every job in it. */
import { readTargetUrl } from '../../config';
import type { ParseContext } from '../../job/envelope/parse';
import { readTrace } from '../../job/trace';
import type { AppContext } from '../context';

/** The context in which the jobs of a request are read. */
export function parseContext(c: AppContext): ParseContext {
  const trace = readTrace(c.req.header('traceparent'), c.req.header('tracestate'));
  return { now: Date.now(), readTarget: readTargetUrl(c.env), ...(trace && { trace }) };
}
