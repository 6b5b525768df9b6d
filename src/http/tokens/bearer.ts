import type { Redactor } from '../../access/redaction';
import {
  type Audience,
  isJwt,
  isOurKind,
  readTokenRights,
  type TokenRights,
  type VerifiedToken,
  verifiedToken,
} from '../../access/token';
import { readLogin, readTokens } from '../../config';
import { defined, isObject, readName } from '../../job/envelope/fields';
import { UNKNOWN_MEMBERS } from '../../job/envelope/render';
import { type ApiError, refusal } from '../../job/errors';
import { own } from '../../job/own';
import type { AppContext, Caller } from '../context';
import type { Rules } from '../route';
import { attempts } from '../session/attempts';
import { clientAddress, keyWithHint, sentToken, unauthorized } from '../session/identify';

/** What may be a token in a request, if this deployment has tokens. @throws {ApiError} 500 `invalid_configuration` */
export function tokenIn(c: AppContext): string | undefined {
  const sent = sentToken(c);
  if (sent === undefined || !isJwt(sent) || readTokens(c.env).secrets.length === 0) return undefined;
  // Others are for the identity provider to judge.
  return isOurKind(sent) || !readLogin(c.env) ? sent : undefined;
}

/** What the rights of a token need of the key that made it. */
export const SCOPE_OF = { read: 'data:read', signals: 'data:write', enqueue: 'data:write' } as const;

/** @throws {ApiError} 401; 403 `token_scope`; 429 */
export async function callerOf(c: AppContext, token: string, { token: right }: Rules): Promise<Caller> {
  const { claims, end, maker } = await verified(c, token, 'tocsin', unauthorized('This token is not valid.'));
  if (end <= Date.now()) throw refusal(401, 'token_expired', 'The token has expired.');
  const rights = readTokenRights(claims);
  const isUsable = right && (!maker || maker.scopes.includes(SCOPE_OF[right])) && allows(c, rights, right);
  if (!isUsable) throw beyond('This token does not allow this request.');
  const { name = null, key_hint = null, key_id, bounds, rate } = maker ?? {};
  const ofKey = { open: false, name, key_hint, ...defined({ key_id, bounds, rate }) };
  return { ...ofKey, role: 'custom', scopes: [], token: { ...rights, jti: claims.jti, end } };
}

export const beyond = (message: string): ApiError => refusal(403, 'token_scope', message);

function allows(c: AppContext, { job, read, signals, enqueue }: TokenRights, right: keyof typeof SCOPE_OF): boolean {
  if (right === 'enqueue') return enqueue !== undefined;
  if (job !== c.req.param('id')) return false;
  return right === 'read' ? read === true : signals?.includes(c.req.param('name') ?? '') === true;
}

/** Refuses what is not valid, as a failed login. @throws {ApiError} `invalid`; 429 */
export function refuseForged(c: AppContext, invalid: ApiError): never {
  attempts.begin(clientAddress(c), Date.now());
  console.warn(`${c.get('requestId')} ${c.req.method}: a token that is not valid was refused`);
  throw invalid;
}

/** A token with a right signature, and the key that made it, if any. A forged one counts as a failed login. */
export async function verified(
  c: AppContext,
  token: string,
  audience: Audience,
  invalid: ApiError,
  settings = readTokens(c.env),
): Promise<VerifiedToken & { maker?: Caller }> {
  const found = await verifiedToken(settings, token, audience, Date.now());
  if (!found) refuseForged(c, invalid);
  const { kid } = found;
  const maker = kid === undefined ? undefined : await keyWithHint(c, kid);
  if (kid !== undefined && !maker) throw invalid;
  return maker ? { ...found, maker } : found;
}

/** Makes a body enqueue one type into one queue, without options, once for its `jti`. @throws {ApiError} 400, 403 */
export function bindToToken(body: Record<string, unknown>, { enqueue, jti }: NonNullable<Caller['token']>): void {
  readName(200)(jti, 'jti');
  const { type, queue, group } = enqueue ?? {};
  const options = isObject(body.options) ? body.options : {};
  const asked = { ...options, ...body };
  const allowed: Record<string, unknown> = { type, queue, group };
  for (const [name, value] of Object.entries(asked)) {
    if (['args', 'specversion', 'options'].includes(name) || (value ?? undefined) === own(allowed, name)) continue;
    throw beyond(`This token enqueues only jobs of type ${type} in queue ${queue}, and sets no other ${name}.`);
  }
  Object.assign(body, { type, queue: null, group: null, options: defined({ queue, group }) });
}

/** Members of answers and events that a token is shown. In an object among them the same ones are. */
const SHOWN = [
  ...['id', 'job_id', 'type', 'job_type', 'queue', 'state', 'job', 'attempt', 'max_attempts', 'signal', 'name', 'at'],
  ...['created_at', 'enqueued_at', 'scheduled_at', 'started_at', 'completed_at', 'cancelled_at', 'discarded_at'],
  ...['failed_at', 'expires_at', 'updated_at', 'run_at', 'next_retry_at', 'timestamp', 'time', 'cancelled'],
  ...['event', 'key', 'is', 'specversion', 'source', 'subject', 'from', 'to', 'deduplicated', 'accumulated'],
];
const SHOWN_TO_READERS = [
  ...['progress', 'message', 'error', 'code', 'data', 'reason', 'dead_letter', 'duration_ms', 'backoff_ms', 'dropped'],
];

/** What a handler returns and reports is shown whole. */
const WHOLE = ['result', 'progress_data', 'stream'];

/** Answers for a token: neither what the job was given, nor what its handler notes for operators. */
export function shownBy({ read }: TokenRights, redact: Redactor = (answer) => answer): Redactor {
  const names = new Set(read ? [...SHOWN, ...SHOWN_TO_READERS] : SHOWN);
  const shown = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map(shown);
    const { [UNKNOWN_MEMBERS]: foreign = [] } = value as { [UNKNOWN_MEMBERS]?: readonly string[] };
    const isReport = Object.hasOwn(value, 'progress');
    const members = Object.entries(value).flatMap(([name, member]) => {
      if (foreign.includes(name)) return [];
      if (read && (WHOLE.includes(name) || (isReport && name === 'data'))) return [[name, member]];
      return names.has(name) ? [[name, shown(member)]] : [];
    });
    return Object.fromEntries(members);
  };
  return <T>(answer: T) => redact(shown(answer)) as T;
}
