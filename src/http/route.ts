/** How a resource declares a route: method, path, handler, the scope that a key needs, and whether it takes an `Idempotency-Key`. */
import type { Scope } from '../job/access';
import type { AppContext } from './context';

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

export type RouteHandler = (c: AppContext) => Response | Promise<Response>;

/** The scope that a key needs; `key`: any key will do; `public`: none is asked for. */
export type Needed = Scope | 'key' | 'public';

/** What a route says beyond its method and path. */
export interface RouteRules {
  /**
   * Under which name a write is recorded in the audit log, such as `queue.pause`; `none`: it is no operator's, but of the
   * producers and workers, or it changes nothing. Every route that is not read says one of the two.
   */
  audit?: string;
  /** Default: {@link defaultScope}. */
  scope?: Needed;
  /** Remembers its answer under the request's `Idempotency-Key`. Other routes refuse a POST that brings one. */
  takesIdempotencyKey?: boolean;
  /**
   * Tells of an attempt that runs. Such a request is answered while the deployment's variables are wrong, so that no attempt is
   * lost to them; every other one that needs a key is refused, before it changes anything.
   */
  reports?: boolean;
  /** Looks at what is in effect: it is answered without waiting for what the code declares. */
  asItIs?: boolean;
  /** Its answer goes to the worker that runs the job, which must have everything: nothing in it is redacted. */
  toWorker?: boolean;
}

/** The rules of a request that tells of an attempt that runs. */
export const REPORTS: RouteRules = { reports: true, toWorker: true, audit: 'none' };

/** The rules of a write by producers and workers. */
export const DATA: RouteRules = { audit: 'none' };

/** The rules of a request, with the scope that holds. */
export interface Rules extends RouteRules {
  scope: Needed;
}

/** Looks at a request before its handler does: answers it, throws what refuses it, or lets it go on. */
export type Check = (c: AppContext, rules: Rules) => Response | undefined | Promise<Response | undefined>;

export interface Route extends RouteRules {
  method: Method;
  /** As Hono reads it; relative to the prefix under which `routes.ts` mounts it. */
  path: string;
  handler: RouteHandler;
}

type Declare = (path: string, handler: RouteHandler, rules?: RouteRules) => Route;

const declare =
  (method: Method): Declare =>
  (path, handler, rules) => ({ method, path, handler, ...rules });

export const get = declare('GET');
export const post = declare('POST');
export const put = declare('PUT');
export const patch = declare('PATCH');
export const del = declare('DELETE');

/** Operators' routes are below this path. */
export const ADMIN_PREFIX = '/ojs/v1/admin';

/** The scope of a route that declares none, and of a path that no route has: by who uses the path, and whether it only reads. */
export function defaultScope(method: string, path: string): Scope {
  const side = path === ADMIN_PREFIX || path.startsWith(`${ADMIN_PREFIX}/`) ? 'admin' : 'data';
  return `${side}:${method === 'GET' || method === 'HEAD' ? 'read' : 'write'}`;
}
