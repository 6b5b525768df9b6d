/** What every handler finds in its context. */
import type { Context, Hono, MiddlewareHandler } from 'hono';
import type { Env } from '../config';

export interface AppEnv {
  Bindings: Env;
  Variables: {
    /** Echoed in `X-Request-ID` and in every error. */
    requestId: string;
  };
}

export type App = Hono<AppEnv>;
export type AppContext = Context<AppEnv>;
export type Middleware = MiddlewareHandler<AppEnv>;
