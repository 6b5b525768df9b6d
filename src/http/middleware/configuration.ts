/** Answers mistakes in the deployment's variables and code before a request has any effect; reports about attempts go on. */
import { type Env, readConfig } from '../../config';
import type { Middleware } from '../context';
import { routeOf, scopeOf } from '../routes';

/** Waits for what must have happened before a request is served. @throws {ApiError} 500 `invalid_configuration` */
export type Ready = (env: Env) => Promise<void>;

export function configuration(ready: Ready | undefined): Middleware {
  return async (c, next) => {
    if (scopeOf(c) !== 'public' && !routeOf(c)?.reports) {
      readConfig(c.env);
      await ready?.(c.env);
    }
    await next();
  };
}
