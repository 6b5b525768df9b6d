/** Answers mistakes in variables and code before a request has any effect; reports about attempts continue. */
import { checkPlace } from '../../across/place';
import { type Env, readConfig } from '../../config';
import type { Check } from '../route';

/** Waits for the work before a request is served. @throws {ApiError} 500 `invalid_configuration` */
export type Ready = (env: Env) => Promise<void>;

export function configuration(ready: Ready | undefined): Check {
  return async (c, { scope, reports, asItIs }) => {
    if (scope === 'public') return undefined;
    // Reports, too: there would be no such job in another place.
    await checkPlace(c.env);
    if (reports) return undefined;
    readConfig(c.env);
    if (asItIs) return undefined;
    await ready?.(c.env);
    return undefined;
  };
}
