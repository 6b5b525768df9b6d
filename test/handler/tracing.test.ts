import * as otel from '@opentelemetry/api';
import { describe, expect, it } from 'vitest';
import { defineHandlers, SuspendedError, snooze, tracing } from '../../src/handler';
import { inSpan, traced } from '../support/otel';

const spans = traced();
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const job = (meta: Record<string, unknown> = { traceparent: `00-${TRACE}-${PARENT}-01` }) => ({
  id: '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee',
  type: 'email.send',
  queue: 'mail',
  attempt: 2,
  meta,
});
const run = (next: () => Promise<unknown>, meta?: Record<string, unknown>) => tracing(otel)(job(meta), {}, next);
const processed = () => spans().find(({ kind }) => kind === otel.SpanKind.CONSUMER);

describe('a run with OpenTelemetry', () => {
  it('is a span of the consumer in the trace of its producer, and active while the handler runs', async () => {
    const inner = await run(async () => otel.trace.getActiveSpan()?.spanContext());
    expect(processed()).toMatchObject({
      name: 'process mail',
      parentSpanContext: { traceId: TRACE, spanId: PARENT, isRemote: true },
      attributes: {
        'messaging.system': 'tocsin',
        'messaging.destination.name': 'mail',
        'messaging.operation.name': 'process',
        'messaging.operation.type': 'process',
        'messaging.message.id': job().id,
        'tocsin.job.type': 'email.send',
        'tocsin.job.attempt': 2,
      },
      status: { code: otel.SpanStatusCode.UNSET },
      links: [],
    });
    expect(inner).toEqual(processed()?.spanContext());
  });

  it('is linked to the span in which its call arrived', async () => {
    await inSpan(() => run(async () => 'done'));
    const program = spans().find(({ name }) => name === 'program');
    expect(processed()?.links).toMatchObject([{ context: { spanId: program?.spanContext().spanId } }]);
  });

  it.each([undefined, 7, '', '00-1-2-3', `00-${'0'.repeat(32)}-${PARENT}-01`, `ff-${TRACE}-${PARENT}-01`])(
    'belongs to the active span where its job has no trace: %j',
    async (traceparent) => {
      expect(await inSpan(() => run(async () => 'result', { traceparent }))).toBe('result');
      const program = spans().find(({ name }) => name === 'program');
      expect(processed()?.parentSpanContext?.spanId).toBe(program?.spanContext().spanId);
    },
  );

  it('that fails is a span with an error, and fails as before', async () => {
    const error = new RangeError('too far');
    await expect(run(() => Promise.reject(error))).rejects.toBe(error);
    await expect(run(() => Promise.reject('a text'))).rejects.toBe('a text');
    const [first, second] = spans();
    expect(first).toMatchObject({
      status: { code: otel.SpanStatusCode.ERROR, message: 'too far' },
      attributes: { 'error.type': 'RangeError' },
      events: [{ name: 'exception' }],
    });
    expect(second?.status).toEqual({ code: otel.SpanStatusCode.ERROR, message: 'a text' });
  });

  it.each([['snoozes', snooze('10m')] as const, ['sleeps', new SuspendedError()] as const])(
    'that %s is a span without an error',
    async (_, later) => {
      await expect(run(() => Promise.reject(later))).rejects.toBe(later);
      expect(processed()?.status).toEqual({ code: otel.SpanStatusCode.UNSET });
    },
  );

  it('is one around the handlers of a Worker', async () => {
    const worker = defineHandlers({ 'email.send': (sent) => sent.attempt }, { use: [tracing(otel)] });
    const request = new Request('https://handler', { method: 'POST', body: JSON.stringify({ job: job() }) });
    expect(await (await worker.fetch(request, {})).json()).toEqual({ status: 'completed', result: 2 });
    expect(processed()).toMatchObject({ name: 'process mail', parentSpanContext: { traceId: TRACE, spanId: PARENT } });
  });
});
