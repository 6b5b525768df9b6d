import type { Scope } from '../access/access';
import type { Contract, Exchange, Method, RouteRules } from '../contract/route';
import { own } from '../job/own';
import type { Answer, AppContext } from './context';

export { METHODS } from '../contract/route';

export type RouteHandler = (c: AppContext) => Response | Promise<Response>;

/** The rules of a request, with the scope that holds. */
export interface Rules extends RouteRules {
  scope: NonNullable<RouteRules['scope']>;
}

/** Checks a request before its handler: answers it, throws its refusal, or passes it on. */
export type Check = (c: AppContext, rules: Rules) => Response | undefined | Promise<Response | undefined>;

export interface Route extends RouteRules {
  method: Method;
  /** In Hono's syntax; relative to the prefix under which `routes.ts` mounts it. */
  path: string;
  handler: RouteHandler;
  contract: Contract;
}

type Answers<T extends Exchange> = { [Status in keyof T & number]: Answer<T[Status], Status> }[keyof T & number];

/** A handler that answers what its contract says. */
export type HandlerOf<C> = C extends Contract<infer T> ? (c: AppContext) => Answers<T> | Promise<Answers<T>> : never;

/** The routes of a resource: each of its contracts with the handler of the same name, in the order of the contracts. */
export const serve = <Contracts extends Record<string, Contract>>(
  contracts: Contracts,
  handlers: { [Name in keyof Contracts]: HandlerOf<Contracts[Name]> },
): Route[] =>
  Object.entries(contracts).map(([name, contract]) => ({
    ...contract,
    contract,
    handler: own(handlers as Record<string, unknown>, name) as RouteHandler,
  }));

/** Operators' routes are below this path. */
export const ADMIN_PREFIX = '/ojs/v1/admin';

/** The scope of a route that declares none, and of an unknown path: by its users, and whether it only reads. */
export function defaultScope(method: string, path: string): Scope {
  const side = path === ADMIN_PREFIX || path.startsWith(`${ADMIN_PREFIX}/`) ? 'admin' : 'data';
  return `${side}:${method === 'GET' || method === 'HEAD' ? 'read' : 'write'}`;
}
