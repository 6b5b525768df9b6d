/** Callers that an identity provider knows: by its JWT, or by the session that a login in the browser has begun. */
import { grantOf, type LoginSettings, type Person, personIn } from '../../access/login';
import { isJwt } from '../../access/token';
import { readLogin, readSessions } from '../../config';
import { defined } from '../../job/envelope/fields';
import { refusal } from '../../job/errors';
import type { AppContext, Caller } from '../context';
import { refuseForged, verified } from '../tokens/bearer';
import { isKey, loginNeeded, ownPagesOnly, presentedToken, sentToken } from './identify';

/**
 * The caller that has logged in; undefined: the request brings a key, or nothing. What the client sends itself counts
 * first, then the header of the proxy, then the cookie.
 * @throws {ApiError} 401; 403 `no_role`; 429; 503 where the provider's keys cannot be read
 */
export async function callerByLogin(c: AppContext): Promise<Caller | undefined> {
  const sent = sentToken(c);
  if (sent === undefined ? c.req.header('Authorization') !== undefined : !isJwt(sent)) return undefined;
  const login = readLogin(c.env);
  if (!login) return undefined;
  if (sent !== undefined) return (await isKey(c, sent)) ? undefined : await callerOfJwt(c, login, sent);
  const passed = login.header && c.req.header(login.header);
  if (passed) {
    ownPagesOnly(c, `The header ${login.header}`);
    return await callerOfJwt(c, login, passed);
  }
  const cookie = presentedToken(c);
  if (cookie === undefined || !isJwt(cookie) || !login.client || (await isKey(c, cookie))) return undefined;
  const invalid = loginNeeded(c, 'This login is not valid.');
  const { claims, end } = await verified(c, cookie, 'tocsin:session', invalid, readSessions(c.env));
  // A session of another provider, or of an earlier one.
  if (end <= Date.now() || claims.iss !== login.issuer) throw loginNeeded(c, 'This login has expired.');
  return callerOf(login, claims.person as Person, end);
}

async function callerOfJwt(c: AppContext, login: LoginSettings, jwt: string): Promise<Caller> {
  const { providerOf } = await import('./provider');
  const claims = await providerOf(login).claimsOf(jwt);
  const person = claims && personIn(login, claims);
  if (!person) refuseForged(c, loginNeeded(c, 'This login is not valid.'));
  return callerOf(login, person, Number(claims?.exp) * 1_000);
}

/** @param end epoch ms @throws {ApiError} 403 `no_role` */
export function callerOf(login: LoginSettings, { subject, name, values }: Person, end: number): Caller {
  const grant = grantOf(login, values);
  if (grant) return defined({ open: false, name, ...grant, key_hint: null, via: 'login' as const, subject, end });
  const details = { claim: login.roles.claim };
  throw refusal(403, 'no_role', 'You are logged in, but have no role here.', { details });
}
