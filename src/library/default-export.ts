/** The default export of a Worker that holds the queue: its own handlers, plus the queue's requests. */
import { WorkerEntrypoint } from 'cloudflare:workers';
import type { Env } from '../config';

export type EntrypointClass = new (ctx: ExecutionContext, env: never) => WorkerEntrypoint;

/** Serves a request for the queue; undefined: it is for the Worker's own code. */
export type Serve = (request: Request, env: Env, hasOwn: boolean) => Promise<Response> | undefined;

/** Called before the Worker's own code handles an event. Does not throw. */
export type Notice = (env: Env, ctx: Pick<ExecutionContext, 'waitUntil'>) => void;

/** @throws {TypeError} where the runtime would not take it either */
export function withQueue(own: ExportedHandler<Env> | EntrypointClass, serve: Serve, notice: Notice): object {
  if (typeof own === 'function') return derived(own, serve, notice);
  if (typeof own !== 'object' || own === null)
    throw new TypeError('worker() needs an object with handlers, or a class.');
  const fetch: ExportedHandlerFetchHandler<Env> = (request, env, ctx) => {
    const answer = serve(request, env, own.fetch !== undefined);
    if (answer) return noticed(answer, env, ctx, notice);
    notice(env, ctx);
    return (own.fetch as typeof fetch)(request, env, ctx);
  };
  return { ...handlersOf(own, notice), fetch };
}

/** A request to the queue looks for itself, unless it is open to everybody: so this looks after it. */
async function noticed(
  answer: Promise<Response>,
  env: Env,
  ctx: Pick<ExecutionContext, 'waitUntil'>,
  notice: Notice,
): Promise<Response> {
  try {
    return await answer;
  } finally {
    notice(env, ctx);
  }
}

/** All methods remain, also those that other Workers call by RPC. */
function derived(given: EntrypointClass, serve: Serve, notice: Notice): EntrypointClass {
  if (!(given.prototype instanceof WorkerEntrypoint)) {
    throw new TypeError('worker() accepts a class only if it extends WorkerEntrypoint, as the runtime does.');
  }
  const Own = given as unknown as typeof WorkerEntrypoint<Env>;
  const own = Own.prototype.fetch as ((request: Request) => Response | Promise<Response>) | undefined;
  class Derived extends Own {
    override fetch(request: Request): Response | Promise<Response> {
      const answer = serve(request, this.env, own !== undefined);
      if (answer) return noticed(answer, this.env, this.ctx, notice);
      notice(this.env, this.ctx);
      return (own as NonNullable<typeof own>).call(this, request);
    }
  }
  for (const [name, method] of methodsOf(Own.prototype)) {
    const value = function (this: Derived, ...given: unknown[]): unknown {
      notice(this.env, this.ctx);
      return method.apply(this, given);
    };
    Object.defineProperty(Derived.prototype, name, { value, configurable: true, writable: true });
  }
  return Derived as unknown as EntrypointClass;
}

type Method = (...given: unknown[]) => unknown;

/** What a class does at events other than requests, and what others call by RPC. */
function methodsOf(prototype: object): Map<string, Method> {
  const found = new Map<string, Method>();
  for (let at = prototype; at !== WorkerEntrypoint.prototype; at = Object.getPrototypeOf(at)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (name !== 'constructor' && name !== 'fetch' && typeof value === 'function' && !found.has(name))
        found.set(name, value as Method);
    }
  }
  return found;
}

/** An object's own and inherited members, methods bound to it: an instance has its handlers in its class. */
function handlersOf(own: object, notice: Notice): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (let at = own; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) {
      if (name === 'constructor' || Object.hasOwn(found, name)) continue;
      const value: unknown = Reflect.get(own, name);
      found[name] = typeof value === 'function' ? noticing(value as Method, own, notice) : value;
    }
  }
  return found;
}

/** The runtime calls a handler with the event, the bindings and the context. */
function noticing(handler: Method, own: object, notice: Notice): Method {
  return (...given) => {
    const [, env, ctx] = given as [unknown, Env, Partial<ExecutionContext> | undefined];
    if (typeof ctx?.waitUntil === 'function') notice(env, ctx as ExecutionContext);
    return handler.apply(own, given);
  };
}
