/** The default export of a Worker that holds the queue: its own handlers stay, and the queue gets the requests that are for it. */
import { WorkerEntrypoint } from 'cloudflare:workers';
import type { Env } from '../config';

/** A class that the runtime makes anew for each event. */
export type EntrypointClass = new (ctx: ExecutionContext, env: never) => WorkerEntrypoint;

/** Serves a request for the queue; undefined: it is for the Worker's own code. */
export type Serve = (request: Request, env: Env, hasOwn: boolean) => Promise<Response> | undefined;

/** @throws {TypeError} where the runtime would not take it either */
export function withQueue(own: ExportedHandler<Env> | EntrypointClass, serve: Serve): object {
  if (typeof own === 'function') return derived(own, serve);
  if (typeof own !== 'object' || own === null)
    throw new TypeError('worker() takes an object with handlers, or a class.');
  const fetch: ExportedHandlerFetchHandler<Env> = (request, env, ctx) =>
    serve(request, env, own.fetch !== undefined) ?? (own.fetch as typeof fetch)(request, env, ctx);
  return { ...handlersOf(own), fetch };
}

/** All methods remain, also those that other Workers call by RPC. */
function derived(given: EntrypointClass, serve: Serve): EntrypointClass {
  if (!(given.prototype instanceof WorkerEntrypoint)) {
    throw new TypeError('worker() takes a class only if it extends WorkerEntrypoint, as the runtime does.');
  }
  const Own = given as unknown as typeof WorkerEntrypoint<Env>;
  const own = Own.prototype.fetch as ((request: Request) => Response | Promise<Response>) | undefined;
  return class extends Own {
    override fetch(request: Request): Response | Promise<Response> {
      return serve(request, this.env, own !== undefined) ?? (own as NonNullable<typeof own>).call(this, request);
    }
  } as unknown as EntrypointClass;
}

/** What an object has and inherits, with methods that know their object: an instance keeps its handlers in its class. */
function handlersOf(own: object): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (let at = own; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) {
      if (name === 'constructor' || Object.hasOwn(found, name)) continue;
      const value: unknown = Reflect.get(own, name);
      found[name] = typeof value === 'function' ? value.bind(own) : value;
    }
  }
  return found;
}
