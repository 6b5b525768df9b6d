/** Who may call what: the caller's key has scopes, and the route says which one is needed (`routes.ts`). */
import type { Scope } from '../../job/access';
import { ApiError } from '../../job/errors';
import type { Middleware } from '../context';
import { scopeOf } from '../routes';
import { ANYONE, identify, presentedToken } from '../session/identify';

export const authentication: Middleware = async (c, next) => {
  const needed = scopeOf(c);
  if (needed !== 'public') {
    const caller = await identify(c, () => presentedToken(c));
    if (needed !== 'key' && !caller.scopes.includes(needed)) throw forbidden(needed);
    c.set('caller', caller);
  }
  await next();
};

/** Lets everything in: the caller is trusted. */
export const everything: Middleware = async (c, next) => {
  c.set('caller', ANYONE);
  await next();
};

function forbidden(scope: Scope): ApiError {
  return new ApiError({
    status: 403,
    code: 'forbidden',
    message: `This API key lacks the scope ${scope}.`,
    retryable: false,
    details: { required_scope: scope },
  });
}
