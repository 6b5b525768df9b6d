/** Who may call what: the caller's key has scopes, and the route says which one is needed (`route.ts`). */
import type { Scope } from '../../job/access';
import { ApiError } from '../../job/errors';
import type { Check } from '../route';
import { ANYONE, identify, presentedToken } from '../session/identify';

export const authentication: Check = async (c, { scope: needed }) => {
  if (needed === 'public') return undefined;
  const caller = await identify(c, () => presentedToken(c));
  if (needed !== 'key' && !caller.scopes.includes(needed)) throw forbidden(needed);
  c.set('caller', caller);
  c.set('from', 'keyed');
  return undefined;
};

/** Lets everything in: the caller is trusted. */
export const everything: Check = (c) => {
  c.set('caller', ANYONE);
  c.set('from', 'inside');
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
