import * as otel from '@opentelemetry/api';
import { afterEach, describe, expect, it } from 'vitest';
import { inSpan, traced } from '../support/otel';
import { type Json, server } from '../support/server';
import { liveClient } from './live-client';

const spans = traced();
const tocsin = liveClient({ otel });

/** The span of an enqueue, and the trace that a job of it has. */
const sent = () => spans().find(({ kind }) => kind === otel.SpanKind.PRODUCER);
const traceparent = () => {
  const { traceId, spanId } = sent()?.spanContext() ?? {};
  return `00-${traceId}-${spanId}-01`;
};
const metaOf = async (id: string) => (await server.job(id)).meta as Json;

afterEach(() => expect(spans().every(({ ended }) => ended)).toBe(true));

describe('an enqueue with OpenTelemetry', () => {
  it('is a span of the producer, below the active one, whose trace the job takes along', async () => {
    const { id } = await inSpan(() => tocsin.enqueue('test.job', [], { queue: 'traced', meta: { a: 1 } }));
    expect(sent()).toMatchObject({
      name: 'send traced',
      attributes: {
        'messaging.system': 'tocsin',
        'messaging.destination.name': 'traced',
        'messaging.operation.name': 'send',
        'messaging.operation.type': 'send',
        'messaging.message.id': id,
      },
      status: { code: otel.SpanStatusCode.UNSET },
    });
    const program = spans().find(({ name }) => name === 'program');
    expect(sent()?.parentSpanContext?.spanId).toBe(program?.spanContext().spanId);
    expect(await metaOf(id)).toEqual({ a: 1, traceparent: traceparent() });
  });

  it('keeps each job of a gathered request in its own trace', async () => {
    const jobs = await Promise.all([1, 2].map(() => inSpan(() => tocsin.enqueue('test.job', []))));
    const metas = await Promise.all(jobs.map(({ id }) => metaOf(id)));
    const producers = spans().filter(({ kind }) => kind === otel.SpanKind.PRODUCER);
    expect(metas.map(({ traceparent }) => (traceparent as string).split('-')[1]).sort()).toEqual(
      producers.map((span) => span.spanContext().traceId).sort(),
    );
    expect(new Set(metas.map(({ traceparent }) => traceparent)).size).toBe(2);
  });

  it('leaves the trace that a job names itself', async () => {
    const meta = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' };
    const { id } = await tocsin.enqueue('test.job', [], { meta });
    expect(await metaOf(id)).toEqual(meta);
  });

  it('may be repeated under its key, in another trace', async () => {
    const enqueue = () => tocsin.enqueue('test.job', [], { queue: 'traced', idempotencyKey: 'traced-key' });
    const first = await enqueue();
    const trace = traceparent();
    expect((await enqueue()).id).toBe(first.id);
    expect(await metaOf(first.id)).toEqual({ traceparent: trace });
  });

  it.each([
    ['enqueueMany', 'send traced', ['traced', 'traced']],
    ['enqueueMany', 'send', ['traced', 'other']],
    ['enqueueEach', 'send traced', ['traced', 'traced']],
  ] as const)('by %s is one span %s', async (method, name, queues) => {
    const jobs = queues.map((queue) => ({ type: 'test.job', args: [], options: { queue } }));
    const answer = await tocsin[method as 'enqueueMany'](jobs);
    expect(sent()).toMatchObject({ name, attributes: { 'messaging.batch.message_count': 2 } });
    expect(sent()?.attributes['messaging.destination.name']).toBe(name === 'send' ? undefined : 'traced');
    const list = (Array.isArray(answer) ? answer : (answer as Json).items) as Json[];
    for (const entry of list) {
      expect(await metaOf(((entry.job as Json | undefined) ?? entry).id as string)).toEqual({
        traceparent: traceparent(),
      });
    }
  });

  it('that is refused is a span with an error', async () => {
    await expect(tocsin.enqueue('Bad Type', [])).rejects.toThrow();
    expect(sent()).toMatchObject({
      status: { code: otel.SpanStatusCode.ERROR },
      attributes: { 'error.type': 'InvalidJobError' },
      events: [{ name: 'exception' }],
    });
  });
});

describe('an enqueue without a tracer', () => {
  it('sends no trace', async () => {
    const { id } = await inSpan(() => liveClient().enqueue('test.job', []));
    expect(await metaOf(id)).toEqual({});
    otel.trace.disable();
    const quiet = await tocsin.enqueue('test.job', []);
    expect(await metaOf(quiet.id)).toEqual({});
  });
});
