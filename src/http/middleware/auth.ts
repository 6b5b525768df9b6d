import { refusal } from '../../job/errors';
import type { Check } from '../route';
import { ANYONE, identify, presentedToken } from '../session/identify';

export const authentication: Check = async (c, { scope: needed }) => {
  if (needed === 'public') return undefined;
  const caller = await identify(c, () => presentedToken(c));
  if (needed !== 'key' && !caller.scopes.includes(needed)) {
    throw refusal(403, 'forbidden', `This API key lacks the scope ${needed}.`, { details: { required_scope: needed } });
  }
  c.set('caller', caller);
  c.set('from', 'keyed');
  return undefined;
};

/** Lets everything in: the caller is trusted. */
export const everything: Check = (c) => {
  c.set('caller', ANYONE);
  c.set('from', 'inside');
};
