/** The W3C trace of a job, in its `meta` under the names of the headers; its runner continues the trace. */

export interface Trace {
  traceparent: string;
  tracestate?: string;
}

/** Version, trace id, id of the span that enqueued, flags; a version after 00 may say more. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[\x21-\x7e]*)?$/;
const LENGTH_OF_00 = 55;
const MAX_TRACEPARENT = 256;
const MAX_TRACESTATE = 512;

export function isTraceparent(text: string): boolean {
  const max = text.startsWith('00-') ? LENGTH_OF_00 : MAX_TRACEPARENT;
  return text.length <= max && TRACEPARENT.test(text);
}

/** The trace in the headers, if they are valid; anything else is ignored, as the standard requires. */
export function readTrace(traceparent: string | undefined, tracestate: string | undefined): Trace | undefined {
  if (traceparent === undefined || !isTraceparent(traceparent)) return undefined;
  const isState = tracestate !== undefined && /^[\x20-\x7e]+$/.test(tracestate) && tracestate.length <= MAX_TRACESTATE;
  return { traceparent, ...(isState && { tracestate }) };
}

/** `meta` with the trace of the request, unless it names one itself. */
export const withTrace = (meta: Record<string, unknown>, trace: Trace | undefined): Record<string, unknown> =>
  trace === undefined || 'traceparent' in meta ? meta : { ...meta, ...trace };
