/** Who may call what: the caller's key has scopes, and the route says which one is needed (`route.ts`). */
import { readConfig } from '../../config';
import { refusal } from '../../job/errors';
import { type Caller, seesEverything } from '../context';
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

/** Redacts payloads for callers that may not see all of them; the runner of a job gets all of it. */
export const redaction: Check = (c, { toWorker }) => {
  const caller: Caller | undefined = c.get('caller');
  if (caller && !seesEverything(caller) && !toWorker) {
    const { redact } = readConfig(c.env);
    if (redact) c.set('redact', redact);
  }
};
