/**
 * What the code of a deployment declares: its own handlers, and settings that hold from the deploy on. Declared once,
 * while the modules load, so that requests and objects of an isolate see the same.
 */
import type { LimitOverrides } from './job/limits/overrides';
import type { QueueConfig } from './settings';

/** How pushed jobs travel to the deployment's own handlers. Absent: as to any handler Worker. */
export interface OwnDelivery {
  /** Jobs in a call, 1 … 100. */
  batchSize?: number;
  /** Limit of a run where nothing else says one, ms. */
  timeoutMs?: number;
  /** Jobs that run at once, for each queue. */
  maxConcurrency?: number;
}

/** The largest that each of these may be, here and in the options of `HANDLERS`; the least is 1. */
export const DELIVERY_BOUNDS = { batchSize: 100, timeoutMs: 900_000, maxConcurrency: 10_000 } as const;

/** The handlers that run in the Worker of the queue. */
export interface OwnHandlers extends OwnDelivery {
  /** Serves a call with jobs, as the `fetch` of a handler Worker does. */
  fetch(request: Request, env: unknown, ctx: Pick<ExecutionContext, 'waitUntil'>): Promise<Response>;
  /** The job types that they take; `*` takes all. */
  types: readonly string[];
}

/** Settings that the code declares. */
export interface Declared {
  /** By queue. */
  queues: Readonly<Record<string, QueueConfig>>;
  /** By key: they stand in the place of a key's own limits, in every queue. */
  limits: LimitOverrides;
  /** By name, as the server reads them. */
  crons: Readonly<Record<string, Record<string, unknown>>>;
  /** By name, as the server reads them; `{env: NAME}` stands for the value of a variable. */
  webhooks?: Readonly<Record<string, Record<string, unknown>>>;
  /** By name, in the server's form; `webhook` is the name of the only one that is notified. */
  alerts?: Readonly<Record<string, Record<string, unknown>>>;
}

export interface Declaration extends Declared {
  handlers?: OwnHandlers;
  /** Rules by which payloads are redacted, beside those of `REDACT`. */
  redact?: readonly string[] | undefined;
}

const NOTHING: Declaration = { queues: {}, limits: {}, crons: {} };

let declared: Declaration | undefined;

/** Declares this deployment. @throws {Error} when it was declared before: a Worker holds one deployment */
export function declare(declaration: Declaration): void {
  if (declared) throw new Error('createTocsin was called twice: a Worker can have only one deployment of the queue.');
  declared = declaration;
}

/** What this deployment is. */
export function declaration(): Declaration {
  return declared ?? NOTHING;
}
