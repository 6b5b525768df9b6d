/**
 * A call of a tool: requests to this deployment's own routes with the caller's key, so that scopes, bounds, redaction
 * and the audit log are those of every request. A write is looked at first; `confirm` stands for what was seen.
 */
import { fitsBytes } from '../../job/bytes';
import { isRawNumber, parseExactly } from '../../job/envelope/exact';
import { isObject } from '../../job/envelope/fields';
import { ApiError, apiErrorData, conflict, type ErrorData, HINTS, invalidRequest } from '../../job/errors';
import { own } from '../../job/own';
import { quote } from '../../job/text';
import { fingerprintOf } from '../../job/unique/fingerprint';
import { jobMembers, tools } from '../../mcp/built';
import { TOOLS, type Use } from '../../mcp/tools';
import { beginning } from '../audit/entry';
import type { AppContext } from '../context';

type Json = Record<string, unknown>;
type Send = (use: Use, path: string, more?: Json, key?: string) => Promise<Json>;

/** Largest result, as JSON in bytes; and numbers of items of a page, the first that fits. */
const MAX_BYTES = 24 * 1024;
const PAGES = [20, 10, 5, 2, 1];

/** Headers by which the caller is known. The cookie is not among them: it counts only for pages. */
const PASSED = ['Authorization', 'Host', 'CF-Connecting-IP', 'Tocsin-Localhost-Secret'];

/** Conditions that are lists: in a body, where a query has commas. */
const LISTS = ['ids', 'queue', 'type', 'state', 'tags', 'fingerprint'];

/** Requests that tools have made, for the audit log. */
const made = new WeakSet<Request>();
export const viaTool = (c: AppContext): boolean => made.has(c.req.raw);

/** Calls a tool. @param name one of {@link TOOLS} */
export async function callTool(c: AppContext, name: string, given: Json): Promise<{ value: Json; isError?: true }> {
  try {
    return {
      value: fitted(await resultOf(name as keyof typeof TOOLS, given, (...sent) => request(c, given, ...sent))),
    };
  } catch (error) {
    const data = apiErrorData(error);
    if (!data) throw error;
    const { code, message, hint = HINTS[code] } = data;
    return { value: fitted({ code, message, hint }), isError: true };
  }
}

async function resultOf(name: keyof typeof TOOLS, given: Json, send: Send): Promise<Json> {
  const { paths, looks, tool } = tools.find((one) => one.tool.name === name) as (typeof tools)[number];
  const { required, properties } = tool.inputSchema;
  const missing = required.find((member) => (own(given, member) ?? null) === null);
  if (missing !== undefined) throw invalidRequest(missing, `${name} needs the argument ${missing}.`);
  const at = paths.findIndex((path) => namesIn(path).every((member) => own(given, member) !== undefined));
  const [use, path] = [TOOLS[name][at] as Use, paths[at] as string];
  const takes = [namesIn(path), use.query, use.body, use.filter, ['cursor', 'confirm']].flat();
  const extra = Object.keys(given).find((member) => !Object.hasOwn(properties, member) || !takes.includes(member));
  if (extra !== undefined) throw invalidRequest(extra, `${name} takes no ${quote(extra)}, or not with the others.`);
  if (tool.annotations.readOnlyHint) {
    return own(properties, 'cursor') ? await pageOf(send, use, path, given) : shown(use, await send(use, path));
  }
  const { confirm, ...wanted } = given;
  const look = use.look && shown(use.look, await send(use.look, looks[at] as string));
  const now = look ?? (use.filter && shown(use, await send(use, path, { dry_run: true })));
  const count = look ? 1 : (now?.matched ?? 1);
  const nonce = confirm === undefined ? crypto.randomUUID().slice(0, 8) : String(confirm).slice(0, 8);
  const right = `${nonce}-${await fingerprintOf({ nonce, name, wanted, count, look })}`;
  if (confirm === undefined) return { would: name, count, ...(now && { now }), confirm: right };
  if (confirm === right) return shown(use, await send(use, path, use.filter && { confirm: true }, right));
  const refused = 'Nothing was changed: it is not what was confirmed, or it would not do the same by now.';
  throw conflict(refused, {}, 'Call again without confirm to see what it would do now.');
}

const namesIn = (path: string) => Array.from(path.matchAll(/:(\w+)/g), ([, name = '']) => name);

/** Sends what a tool was given to a route. @param more members that the tool adds @throws {ApiError} its refusal */
async function request(c: AppContext, given: Json, use: Use, path: string, more?: Json, key?: string): Promise<Json> {
  const { method, takesIdempotencyKey } = use.contract;
  const picked = (names: readonly string[] = []) =>
    Object.fromEntries(names.map((name) => [name, own(given, name)]).filter(([, value]) => (value ?? null) !== null));
  const url = new URL(c.req.url);
  url.pathname = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(textOf(own(given, name), name, true)));
  const query = Object.entries({ ...picked(use.query), ...(method === 'GET' && more) });
  url.search = new URLSearchParams(query.map(([name, value]) => [name, textOf(value, name)])).toString();
  const which = picked(use.filter);
  for (const name of LISTS) if (name in which) which[name] = String(which[name]).split(',');
  const filter = use.filter && { filter: which };
  const body = (use.body ?? filter) && JSON.stringify({ ...picked(use.body), ...filter, ...more });
  const headers = new Headers({ 'Content-Type': 'application/json', 'X-Request-ID': c.get('requestId') });
  for (const name of PASSED) if (c.req.header(name) !== undefined) headers.set(name, c.req.header(name) ?? '');
  if (key !== undefined && takesIdempotencyKey) headers.set('Idempotency-Key', key);
  const sent = new Request(url, { method, headers, ...(body !== undefined && { body }) });
  made.add(sent);
  const response = await c.get('app').fetch(sent, c.env);
  const answer = parseExactly(await response.text()) as Json;
  if (response.status < 400) return answer;
  throw new ApiError({ ...(answer.error as ErrorData), status: response.status });
}

/** A value of a query, or a part of a path, where dots would lead to another one. @throws {ApiError} */
function textOf(value: unknown, name: string, isPart = false): string {
  if (Array.isArray(value) && !isPart) return value.map((item) => textOf(item, name)).join(',');
  const isText = isPart ? typeof value === 'string' : ['string', 'number', 'boolean'].includes(typeof value);
  if (isText && !(isPart && /^\.{0,2}$/.test(String(value)))) return String(value);
  throw invalidRequest(name, `${name} must be ${isPart ? 'a name or an id' : 'a text, a number, true or false'}.`);
}

/** A page of a list, with fewer items where they are large. Its cursor has an offset, and the cursor of the route. */
async function pageOf(send: Send, use: Use, path: string, { cursor = '0:' }: Json, limits = PAGES): Promise<Json> {
  const [limit = 1, ...smaller] = limits;
  const [, offset = '', inner = ''] = /^(\d{1,6}):(.*)$/s.exec(String(cursor)) ?? [];
  if (offset === '') throw invalidRequest('cursor', 'cursor must be the next_cursor of the page before.');
  const answer = await send(use, path, { limit, offset, ...(inner !== '' && { cursor: inner }) });
  const { has_more: more, next_cursor: next = null } = answer.pagination as Json;
  const { cursor: search, ...items } = shown(use, answer);
  const from = next ?? (more ? inner : search);
  const at = more && next === null ? +offset + limit : 0;
  const page = { ...items, next_cursor: more || from ? `${at}:${from}` : null };
  return fits(page) || smaller.length === 0 ? page : await pageOf(send, use, path, { cursor }, smaller);
}

/** Members whose content applications and their users have written, or that quote it, wherever they stand. */
const UNTRUSTED = new Set([
  ...['args', 'meta', 'metadata', 'result', 'parent_results', 'payload', 'progress_data', 'progress_message'],
  ...['checkpoint', 'error', 'errors', 'sample', 'steps', 'log', 'timeline', 'attempts', 'job_template', 'warnings'],
  ...['detail', 'description', 'message'],
]);
const JOB_MEMBERS = new Set(jobMembers);

/** An answer as agents see it: once, without pages, and marked. */
function shown({ keep }: Use, { pagination: _, job, ...answer }: Json): Json {
  const flat: Json = { ...answer, ...(isObject(job) && job) };
  const names = (keep ?? Object.keys(flat)).filter((name) => name in flat);
  return marked(Object.fromEntries(names.map((name) => [name, flat[name]]))) as Json;
}

function marked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(marked);
  if (!isObject(value) || isRawNumber(value)) return value;
  const isJob = 'type' in value && 'queue' in value && 'state' in value;
  const isTrusted = (name: string) => !UNTRUSTED.has(name) && (!isJob || JOB_MEMBERS.has(name));
  const members = Object.entries(value).flatMap(([name, it]) => (isTrusted(name) ? [[name, marked(it)]] : []));
  const others = Object.entries(value).filter(([name]) => !isTrusted(name));
  return Object.fromEntries(others.length > 0 ? [...members, ['untrusted', Object.fromEntries(others)]] : members);
}

const fits = (value: Json) => fitsBytes(JSON.stringify(value), MAX_BYTES);

/** The part of a value that fits. */
function fitted(value: Json): Json {
  let [part, left] = [value, MAX_BYTES];
  for (; !fits(part); left /= 2) part = { ...(beginning(value, { left }) as Json), truncated: true };
  return part;
}
