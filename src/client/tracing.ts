/** Spans of what a client enqueues, and the trace that its jobs take along. */
import {
  type Attributes,
  failSpan,
  messaging,
  type OpenTelemetry,
  SPAN_KIND,
  type Span,
  TRACER,
  traceparentOf,
} from '../handler/telemetry';

/** The trace of an enqueue, as `traceparent` and `tracestate` have it; empty when there is none. */
export type TraceHeaders = Readonly<Record<string, string>>;

/** Makes a span of each enqueue; without OpenTelemetry it does nothing. */
export class Tracing {
  constructor(private readonly otel: OpenTelemetry | undefined) {}

  /** Runs an enqueue in its own span. @param queues of its jobs, in order @param send gets the trace of its jobs */
  async enqueue<T>(
    queues: readonly string[],
    send: (trace: TraceHeaders) => Promise<T>,
    idsOf: (answer: T) => readonly string[],
    isBatch = queues.length > 1,
  ): Promise<T> {
    if (!this.otel) return await send({});
    const { context, trace } = this.otel;
    const queue = new Set(queues).size === 1 ? queues[0] : undefined;
    const attributes: Attributes = {
      ...messaging('send', queue),
      ...(isBatch && { 'messaging.batch.message_count': queues.length }),
    };
    const active = context.active();
    const name = queue === undefined ? 'send' : `send ${queue}`;
    const span = trace.getTracer(TRACER).startSpan(name, { kind: SPAN_KIND.producer, attributes }, active);
    try {
      const answer = await context.with(trace.setSpan(active, span), () => send(headersOf(span)));
      const [id] = idsOf(answer);
      if (!isBatch && id !== undefined) span.setAttribute('messaging.message.id', id);
      return answer;
    } catch (error) {
      failSpan(span, error);
      throw error;
    } finally {
      span.end();
    }
  }
}

function headersOf(span: Span): TraceHeaders {
  const context = span.spanContext();
  // Without an SDK behind the API spans have no ids.
  if (/^0*$/.test(context.traceId)) return {};
  const tracestate = context.traceState?.serialize();
  return { traceparent: traceparentOf(context), ...(tracestate && { tracestate }) };
}

/** `meta` with this trace, unless it names one itself. */
export function metaWithTrace(
  meta: Record<string, unknown> | undefined,
  trace: TraceHeaders,
): Record<string, unknown> | undefined {
  return trace.traceparent === undefined || meta?.traceparent !== undefined ? meta : { ...meta, ...trace };
}
