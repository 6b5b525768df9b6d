/** What every handler finds in its context, and how it answers. */
import type { Context, Hono, MiddlewareHandler } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { Env, Scope } from '../config';

export interface AppEnv {
  Bindings: Env;
  Variables: {
    /** Echoed in `X-Request-ID` and in every error. */
    requestId: string;
    /** Bytes of its body that are held in memory. */
    heldBytes?: number;
    /** What the key of the request may do; absent on routes that need none. */
    scopes?: readonly Scope[];
  };
}

export type App = Hono<AppEnv>;
export type AppContext = Context<AppEnv>;
export type Middleware = MiddlewareHandler<AppEnv>;

/** May the key of this request have ended jobs removed? */
export function mayPurge(c: AppContext): boolean {
  return c.get('scopes')?.includes('admin:purge') === true;
}

/** The media type of every answer, without a charset. */
export const MEDIA_TYPE = 'application/openjobspec+json';

/** A JSON answer. `headers` are added to those the middleware set. */
export function json(
  c: AppContext,
  body: Record<string, unknown>,
  status: number = 200,
  headers: Record<string, string> = {},
): Response {
  return c.body(JSON.stringify(body), status as ContentfulStatusCode, { ...headers, 'Content-Type': MEDIA_TYPE });
}
