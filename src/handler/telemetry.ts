/**
 * What is used of OpenTelemetry, by its shape: a program that traces hands over the module `@opentelemetry/api`, and
 * one that does not needs no such package. Spans and attributes are named by the semantic conventions for messaging.
 */
import { isA, memberOf, messageOf } from '../job/thrown';

export type Attributes = Record<string, string | number | boolean>;

/** What vendors add to a trace. */
interface TraceState {
  set(key: string, value: string): TraceState;
  unset(key: string): TraceState;
  get(key: string): string | undefined;
  serialize(): string;
}

/** Names a span to others. */
export interface SpanContext {
  traceId: string;
  spanId: string;
  traceFlags: number;
  isRemote?: boolean;
  traceState?: TraceState;
}

export interface Span {
  spanContext(): SpanContext;
  setAttribute(name: string, value: string | number | boolean): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  recordException(error: Error): void;
  end(): void;
}

interface SpanOptions {
  kind: number;
  attributes: Attributes;
  links?: { context: SpanContext }[];
}

/**
 * The part of `@opentelemetry/api` that is used.
 * @example
 * import * as otel from '@opentelemetry/api';
 */
// biome-ignore lint/suspicious/noExplicitAny: whatever the module has
export interface OpenTelemetry<Context = any> {
  context: {
    active(): Context;
    with<T>(context: Context, run: () => T): T;
  };
  trace: {
    getTracer(name: string): { startSpan(name: string, options: SpanOptions, context: Context): Span };
    getSpanContext(context: Context): SpanContext | undefined;
    setSpan(context: Context, span: Span): Context;
    setSpanContext(context: Context, span: SpanContext): Context;
  };
}

/** As the enumerations of OpenTelemetry have them. */
export const SPAN_KIND = { producer: 3, consumer: 4 } as const;
const STATUS_ERROR = 2;

export const TRACER = 'tocsin';

/** The span as the header of W3C Trace Context has it. */
export const traceparentOf = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;

/** The span that a `traceparent` names. */
export function spanContextOf(traceparent: unknown): SpanContext | undefined {
  const match =
    typeof traceparent === 'string'
      ? /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/.exec(traceparent)
      : null;
  const [, traceId = '', spanId = '', flags = ''] = match ?? [];
  if (!/[^0]/.test(traceId) || !/[^0]/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}

/** Attributes of everything that is done with a queue. @param queue absent: several */
export const messaging = (operation: 'send' | 'process', queue: string | undefined): Attributes => ({
  'messaging.system': 'tocsin',
  'messaging.operation.name': operation,
  'messaging.operation.type': operation,
  ...(queue !== undefined && { 'messaging.destination.name': queue }),
});

export function failSpan(span: Span, thrown: unknown): void {
  const message = messageOf(thrown);
  const name = memberOf(thrown, 'name');
  span.recordException(isA(thrown, Error) ? thrown : new Error(message));
  span.setAttribute('error.type', typeof name === 'string' ? name : 'Error');
  span.setStatus({ code: STATUS_ERROR, message });
}
