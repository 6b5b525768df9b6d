/** Handlers that are ready to run, in a handler Worker or in a worker that pulls. */
import type { DefaultsOf } from '../producer/defaults';
import type { Around } from './around';
import { consoleSink, type LogSink } from './log';
import { isObject } from './protocol';
import { Registry } from './registry';
import type { Port, ThreadData } from './thread';

/** Where a handler Worker keeps what runs its jobs. Registered: the handler library and the client are two bundles. */
export const RUNNABLE = Symbol.for('tocsin.handlers');

export interface Runnable {
  registry: Registry;
  sink: LogSink;
  /** Runs them in a thread of a worker that pulls; only what `defineHandlers` returned has it. */
  serve?: (port: Port, data: ThreadData) => void;
}

/** What is registered for the types of a handler Worker. @throws {TypeError} when it is none */
export function defaultsIn(worker: unknown): DefaultsOf {
  const { registry } = (isObject(worker) ? (Reflect.get(worker, RUNNABLE) as Runnable | undefined) : undefined) ?? {};
  if (!registry) throw new TypeError('handlers must be what defineHandlers returned');
  return (type) => registry.defaultsOf(type);
}

/**
 * Makes handlers ready to run.
 * @param handlers functions and definitions by type, one function for all types, or what `defineHandlers` returned
 * @param around middleware and hooks of handlers that are not ready yet
 * @param sink default: that of the handler Worker, else the console
 * @throws {TypeError} when a type name, a handler or a setting is wrong
 */
export function runnable(handlers: unknown, sink?: LogSink, around?: Around): Runnable {
  const made = isObject(handlers) ? (Reflect.get(handlers, RUNNABLE) as Runnable | undefined) : undefined;
  return { registry: made?.registry ?? new Registry(handlers, around), sink: sink ?? made?.sink ?? consoleSink };
}
