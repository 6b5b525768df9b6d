/** Makes tokens for browsers, and URLs that send one signal. */
import { readEnd, readSignalRights, readTokenRights, signalUrl, signToken, type TokenRights } from '../../access/token';
import { readTokens } from '../../config';
import { tokens } from '../../contract/tokens';
import { refusal } from '../../job/errors';
import { formatInstant } from '../../job/time';
import { refuseOthers } from '../../job/unknown-members';
import { type AppContext, may, unredacted } from '../context';
import { readBody } from '../request/body';
import { insideOnly, mustSee } from '../request/bounds';
import { pathParam } from '../request/path';
import { serve } from '../route';
import { SCOPE_OF } from './bearer';

export const tokenRoutes = serve(tokens, { create, signalUrl: createUrl });

const issue = (c: AppContext, end: number) => ({ end, jti: crypto.randomUUID(), kid: c.get('caller')?.key_hint });

const NOT_KEPT = { 'Cache-Control': 'no-store' };

async function create(c: AppContext) {
  const { expires_in, ...given } = await readBody(c);
  refuseOthers(given, ['job', 'read', 'signals', 'enqueue'], ['expires_in']);
  const rights = readTokenRights(given);
  await refuseBeyond(c, rights);
  for (const [right, scope] of Object.entries(SCOPE_OF)) {
    if (!(right in rights) || may(c, scope)) continue;
    const message = `A token with ${right} needs a key with the scope ${scope}.`;
    throw refusal(403, 'forbidden', message, { details: { field: right, required_scope: scope } });
  }
  const end = readEnd(expires_in, 'tocsin', Date.now());
  const token = await signToken(readTokens(c.env), 'tocsin', rights, issue(c, end));
  return unredacted(c, { token, expires_at: formatInstant(end) }, 201, NOT_KEPT);
}

/** The rights of a token lie within the bounds of the key that makes it. @throws {ApiError} 403, 404 */
async function refuseBeyond(c: AppContext, { job, enqueue }: TokenRights): Promise<void> {
  if (job !== undefined) await mustSee(c, job);
  if (enqueue) await insideOnly(c, [{ queue: enqueue.queue, job: enqueue }], false);
}

async function createUrl(c: AppContext) {
  const { expires_in, ...given } = await readBody(c);
  refuseOthers(given, ['signal', 'choices', 'title'], ['expires_in']);
  const rights = readSignalRights({ ...given, job: pathParam(c, 'id') });
  const end = readEnd(expires_in, 'tocsin:signal', Date.now());
  const url = await signalUrl(readTokens(c.env), rights, issue(c, end));
  return unredacted(c, { url, expires_at: formatInstant(end) }, 201, NOT_KEPT);
}
