/**
 * How a contract says what a route is. Nothing here runs but the method, the path and the rules: what travels is types,
 * from which the document of the API is generated (`.ci/openapi.mjs`), with the comments beside them.
 */
import type { Scope } from '../access/access';
import type { Mask } from '../access/secrets';

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

/** The scope that a key needs; `key`: any key will do; `public`: none is asked for. */
export type Needed = Scope | 'key' | 'public';

/**
 * What a key with bounds gets: one job, lists of what lies inside, enqueues inside, one queue and lists of queues
 * inside, what workers that pull do, a workflow, a schedule; `any`: what concerns no jobs. Absent: nothing, as 403.
 */
export type Bound = 'job' | 'enqueue' | 'list' | 'queue' | 'queues' | 'work' | 'workflow' | 'cron' | 'any';

/** What a route says beyond its method and path. */
export interface RouteRules {
  /**
   * The name of a write in the audit log, such as `queue.pause`. `none`: it belongs to producers and workers, not to an
   * operator, or it changes nothing. Every route that does not only read has one of the two.
   */
  audit?: string;
  /** Default: by who uses the path, and whether it only reads. */
  scope?: Needed;
  /** Remembers its answer under the request's `Idempotency-Key`. Other routes refuse a POST that brings one. */
  takesIdempotencyKey?: boolean;
  /**
   * Tells of an attempt that runs. Such a request is answered while the deployment's variables are wrong, so that no
   * attempt is lost to them; every other one that needs a key is refused, before it changes anything.
   */
  reports?: boolean;
  /** Members of its body that hold secrets: nothing but the route's own answer and the receiver gets them. */
  secrets?: Readonly<Record<string, Mask>>;
  /** Looks at what is in effect: it is answered without waiting for what the code declares. */
  asItIs?: boolean;
  /**
   * Its handler says itself what becomes of members of the body that the contract does not name: an error of its own,
   * or a warning.
   */
  judgesMembers?: boolean;
  /** Its answer goes to the worker that runs the job, which must have everything: nothing in it is redacted. */
  toWorker?: boolean;
  /** What a token must allow to be used here; absent: no token is. */
  token?: 'read' | 'signals' | 'enqueue';
  bound?: Bound;
  /** Pages of other origins may not call, unless the deployment names them; not even with a key. */
  ownPages?: boolean;
  /** Pages of any origin may call: what is in the path is a key. */
  anyOrigin?: boolean;
}

/** The rules of a request that tells of an attempt that runs. */
export const REPORTS: RouteRules = { reports: true, toWorker: true, audit: 'none' };

/** The rules of a write by producers and workers. */
export const DATA: RouteRules = { audit: 'none' };

/** Reports and data of one job, within the bounds of a key. */
export const JOB_REPORTS: RouteRules = { ...REPORTS, bound: 'job' };
export const JOB_DATA: RouteRules = { ...DATA, bound: 'job' };

/** Reports of workers that pull, within the bounds of a key. */
export const WORK_REPORTS: RouteRules = { ...REPORTS, bound: 'work' };

/** The rules of an enqueue. */
export const ENQUEUE: RouteRules = { ...DATA, bound: 'enqueue', takesIdempotencyKey: true };

/** An operator's write to one job, and to one queue. @param audit its name in the audit log */
export const onJob = (audit: string): RouteRules => ({ bound: 'job', audit });
export const onQueue = (audit: string): RouteRules => ({ bound: 'queue', audit });

/** An operator's write where others only read, and one that judges the members it gets by itself. */
export const operates = (audit: string): RouteRules => ({ scope: 'admin:write', audit });
export const judges = (audit: string): RouteRules => ({ judgesMembers: true, audit });

/** An operation on many jobs, and one that removes them. @param audit its name in the audit log */
export const onMany = (audit: string): RouteRules => ({ bound: 'list', audit, takesIdempotencyKey: true });
export const removesMany = (audit: string): RouteRules => ({ ...onMany(audit), scope: 'admin:purge' });

/** What travels on a route, beside the usual errors. */
export interface Exchange {
  /** Parameters of the query. */
  query?: object;
  /** The body of the request: JSON. */
  body?: unknown;
  /** Where a socket or a stream is opened: a message of the client, and one of the server. */
  fromClient?: object;
  fromServer?: object;
  /** Statuses of errors that are this route's own, such as 404 where its path names something. */
  errors?: number;
  /** By the status of success: the body of the answer; `null`: none. */
  [status: number]: object | null;
}

/** An answer that is not JSON: its media type. */
export interface Media<Type extends string> {
  readonly media: Type;
}

declare const EXCHANGE: unique symbol;

/** A route by its contract: its server binds a handler to it. */
export interface Contract<T extends Exchange = Exchange> extends RouteRules {
  method: Method;
  /** As Hono reads it; relative to the prefix under which it is mounted. */
  path: string;
  /** In types only. */
  readonly [EXCHANGE]?: T;
}

const declare =
  (method: Method) =>
  <T extends Exchange>(path: string, rules?: RouteRules): Contract<T> => ({ method, path, ...rules });

export const get = declare('GET');
export const post = declare('POST');
export const put = declare('PUT');
export const patch = declare('PATCH');
export const del = declare('DELETE');

/** The members of a request before anything is known of their values: a reader of it names no other. */
export type Unread<T extends object> = { readonly [Name in keyof T]?: unknown };
