/** Who may call what: the caller's key has scopes, and the route says which one is needed (`route.ts`). */
import { readConfig } from '../../config';
import { refusal } from '../../job/errors';
import { type Caller, seesEverything } from '../context';
import type { Check } from '../route';
import { ANYONE, identify, isKey, presentedToken } from '../session/identify';
import { callerByLogin } from '../session/login';
import { callerOf, shownBy, tokenIn } from '../tokens/bearer';

export const authentication: Check = async (c, rules) => {
  const { scope: needed } = rules;
  if (needed === 'public') return undefined;
  const token = tokenIn(c);
  const isToken = token !== undefined && !(await isKey(c, token));
  const caller = isToken
    ? await callerOf(c, token, rules)
    : ((await callerByLogin(c)) ?? (await identify(c, () => presentedToken(c))));
  if (!isToken && needed !== 'key' && !caller.scopes.includes(needed)) {
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
    const seen = caller.token ? shownBy(caller.token, redact) : redact;
    if (seen) c.set('redact', seen);
  }
};
