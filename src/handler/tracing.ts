/** Spans around handlers. */
import type { JobEnvelope } from '../producer/envelope';
import { snoozeOf } from './outcomes';
import { isSuspended } from './suspension';
import { failSpan, messaging, type OpenTelemetry, SPAN_KIND, spanContextOf, TRACER } from './telemetry';

type TracedJob = Pick<JobEnvelope, 'id' | 'type' | 'queue' | 'attempt' | 'meta'>;

/** Runs around a handler. */
export type TracingMiddleware = (job: TracedJob, ctx: unknown, next: () => Promise<unknown>) => Promise<unknown>;

/**
 * Middleware that makes a span `process <queue>` of each run. The span belongs to the trace of the job's producer (its
 * `meta.traceparent`), and is linked to the span of the call. It is active while the handler runs. A run that is only
 * snoozed is not an error.
 * @param otel the module `@opentelemetry/api`
 * @example
 * import * as otel from '@opentelemetry/api';
 *
 * export default defineHandlers(handlers, { use: [tracing(otel)] });
 */
export function tracing<Context>({ context, trace }: OpenTelemetry<Context>): TracingMiddleware {
  return async ({ id, type, queue, attempt, meta }, _, next) => {
    const active = context.active();
    const producer = spanContextOf(meta.traceparent);
    const around = trace.getSpanContext(active);
    const attributes = {
      ...messaging('process', queue),
      'messaging.message.id': id,
      'tocsin.job.type': type,
      'tocsin.job.attempt': attempt,
    };
    const parent = producer ? trace.setSpanContext(active, producer) : active;
    const links = producer && around ? [{ context: around }] : [];
    const options = { kind: SPAN_KIND.consumer, attributes, links };
    const span = trace.getTracer(TRACER).startSpan(`process ${queue}`, options, parent);
    try {
      return await context.with(trace.setSpan(parent, span), next);
    } catch (thrown) {
      if (!isSuspended(thrown) && snoozeOf(thrown) === undefined) failSpan(span, thrown);
      throw thrown;
    } finally {
      span.end();
    }
  };
}
