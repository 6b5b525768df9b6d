/** OpenTelemetry as a program sets it up, with the spans that ended. */
import { AsyncLocalStorage } from 'node:async_hooks';
import * as otel from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeEach } from 'vitest';

/** Registers a tracer for the tests of the file. Gives the spans that have ended, oldest first. */
export function traced(): () => ReadableSpan[] {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const storage = new AsyncLocalStorage<otel.Context>();
  const manager: otel.ContextManager = {
    active: () => storage.getStore() ?? otel.ROOT_CONTEXT,
    with: (context, run, self, ...args) => storage.run(context, () => run.call(self, ...args)),
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  otel.trace.setGlobalTracerProvider(provider);
  otel.context.setGlobalContextManager(manager);
  beforeEach(() => exporter.reset());
  afterAll(() => {
    otel.trace.disable();
    otel.context.disable();
  });
  return () => exporter.getFinishedSpans();
}

/** Runs something in a span of the program's own. */
export function inSpan<T>(run: () => Promise<T>): Promise<T> {
  return otel.trace.getTracer('test').startActiveSpan('program', async (span) => {
    try {
      return await run();
    } finally {
      span.end();
    }
  });
}
