/** API keys made at run time. A key gets at most what its maker has. */
import { roleOf } from '../../access/access';
import {
  hashOf,
  isSlower,
  type KeyMembers,
  type KeyRecord,
  newKey,
  readKey,
  readKeyChange,
  readOverlap,
} from '../../access/keys';
import { forgetKeys } from '../../across/known-keys';
import * as contract from '../../contract/keys';
import { within } from '../../job/bounds';
import { defined } from '../../job/envelope/fields';
import { notFound, refusal, unwrap } from '../../job/errors';
import { formatInstant, withWrittenTimes } from '../../job/time';
import { also } from '../../ojs/names';
import { directoryObject } from '../../rpc/stubs';
import { type AppContext, type Caller, json, noContent, unredacted } from '../context';
import { readBody, readOptionalBody } from '../request/body';
import { pageByName, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { serve } from '../route';

export const adminKeyRoutes = serve(contract.keys, { list, create, show, change, remove, rotate });

const NOT_KEPT = { 'Cache-Control': 'no-store' };

async function list(c: AppContext) {
  const all = await directoryObject(c.env).keyRecords();
  const page = pageByName(all, ({ created_at, id }) => formatInstant(created_at) + id, readPaging(c));
  return json(c, also('ApiKeyList', { ...page, items: page.items.map(render) }));
}

async function create(c: AppContext) {
  const now = Date.now();
  const members = readKey(await readBody(c), now);
  refuseMore(c, members);
  const { id, key } = newKey();
  const { name, key_hint } = c.get('caller') as Caller;
  const created_by = name ?? key_hint ?? undefined;
  const stored = { ...members, id, hash: await hashOf(key), created_at: now, ...defined({ created_by }) };
  const made = unwrap(await directoryObject(c.env).createKey(stored));
  return shownOnce(c, made, key, 201, { Location: `/ojs/v1/admin/keys/${id}` });
}

async function show(c: AppContext) {
  return json(c, render(await find(c)));
}

async function change(c: AppContext) {
  const wanted = readKeyChange(await readBody(c), Date.now());
  const key = unwrap(await directoryObject(c.env).changeKey(pathParam(c, 'id'), wanted));
  forgetKeys(c.env);
  return json(c, render(key));
}

async function remove(c: AppContext) {
  const id = pathParam(c, 'id');
  if (!(await directoryObject(c.env).revokeKey(id))) throw notFound('key', id);
  forgetKeys(c.env);
  return noContent(c);
}

async function rotate(c: AppContext) {
  const overlap = readOverlap((await readOptionalBody(c)) ?? {});
  const before = await find(c);
  // The caller gets the secret, and with it what the key may do.
  refuseMore(c, before);
  const { key } = newKey(before.id);
  const rotated = unwrap(await directoryObject(c.env).rotateKey(before.id, await hashOf(key), overlap));
  return shownOnce(c, rotated, key);
}

async function find(c: AppContext): Promise<KeyRecord> {
  const id = pathParam(c, 'id');
  const found = await directoryObject(c.env).keyRecord(id);
  if (!found) throw notFound('key', id);
  return found;
}

/** @throws {ApiError} 403 for a key that may do more than the caller */
function refuseMore(c: AppContext, { scopes, bounds: wanted = {}, rate }: KeyMembers): void {
  const { scopes: own, bounds, rate: most } = c.get('caller') as Caller;
  const missing = scopes.find((scope) => !own.includes(scope));
  if (missing !== undefined) {
    const message = `This API key lacks the scope ${missing}, and cannot give it to another key.`;
    throw refusal(403, 'forbidden', message, { details: { required_scope: missing } });
  }
  if (bounds && !within(wanted, bounds)) {
    throw refusal(403, 'forbidden', 'The key would reach further than this API key.', { details: { ...bounds } });
  }
  if (!isSlower(rate, most)) {
    throw refusal(403, 'forbidden', `The key needs a rate of at most ${most}, as this API key has.`, {
      details: { rate: most },
    });
  }
}

/** The answer with a secret, which goes neither into the audit log nor into caches. */
function shownOnce<Status extends 200 | 201 = 200>(
  c: AppContext,
  record: KeyRecord,
  key: string,
  status?: Status,
  headers: Record<string, string> = {},
) {
  forgetKeys(c.env);
  c.set('named', record.id);
  return unredacted(c, { ...render(record), key }, status, { ...headers, ...NOT_KEPT });
}

function render({ id, name, scopes, bounds, rate, former = [], ...key }: KeyRecord): contract.ApiKey {
  const { created_at, created_by = null, expires_at = null, used_at = null } = key;
  const last = former.at(-1)?.until;
  return {
    ...{ id, name, role: roleOf(scopes), scopes, ...bounds, ...defined({ rate }) },
    ...withWrittenTimes({ created_at, created_by, expires_at, used_at }),
    ...(last !== undefined && last > Date.now() && { former_until: formatInstant(last) }),
  };
}
