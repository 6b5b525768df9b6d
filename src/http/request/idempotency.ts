/** `Idempotency-Key`: the same request sent again gets the first answer, for 24 hours. */
import { v7 as uuidv7 } from 'uuid';
import type { Keyed } from '../../across/keyed';
import { readName } from '../../job/envelope/fields';
import { invalidRequest, unwrap } from '../../job/errors';
import { fingerprintOf } from '../../job/unique/fingerprint';
import type { IdempotencyKey } from '../../rpc/receipts';
import { directoryObject } from '../../rpc/stubs';
import type { AppContext } from '../context';
import type { JsonObject } from './body';

const HEADER = 'Idempotency-Key';
const MAX_LENGTH = 256;

/** Says that the answer is that of an earlier request. */
export const REPLAYED = { 'Idempotency-Replayed': 'true' };

/** The key of a request and its hash, whatever the order of members. @param inBody yields to the header @throws 400 */
export async function readIdempotency(
  c: AppContext,
  body: JsonObject,
  inBody?: unknown,
): Promise<IdempotencyKey | undefined> {
  const { token, bounds, key_id, subject, key_hint } = c.get('caller') ?? {};
  const header = token ? `token:${token.jti}` : c.req.header(HEADER);
  let key: string | undefined;
  if (header !== undefined) {
    if (header.length === 0 || header.length > MAX_LENGTH) {
      throw invalidRequest(HEADER, `${HEADER} must have 1 to ${MAX_LENGTH} characters.`);
    }
    key = header;
  } else if (inBody !== undefined && inBody !== null) {
    key = readName(MAX_LENGTH)(inBody, 'idempotency_key');
  }
  if (key === undefined) return undefined;
  // Wherever the key is, and whichever wins, the request is the same.
  const { idempotency_key: _, ...asked } = body;
  const hash = await fingerprintOf({ method: c.req.method, path: c.req.path, body: asked });
  // What a key with bounds did is not answered to others.
  const by = subject === undefined ? (key_id ?? key_hint) : `login:${subject}`;
  return { key: bounds ? `${by}:${key}` : key, hash };
}

/**
 * Begins an operation on many jobs under the key of its request, if that has one. Call it when the request is known to
 * be valid: a refusal is not remembered.
 * @throws {ApiError} 400; 409 when the key was used for another request
 */
export async function beginKeyed(c: AppContext, body: JsonObject): Promise<Keyed | undefined> {
  const idempotency = await readIdempotency(c, body, body.idempotency_key);
  if (!idempotency) return undefined;
  const operation = unwrap(await directoryObject(c.env).beginOperation(idempotency, uuidv7()));
  return { idempotency, operation };
}
