/** What every handler finds in its context, and how it answers. */
import type { Context, Hono } from 'hono';
import type { Env } from '../config';
import type { Media } from '../contract/route';
import type { Role, Scope } from '../job/access';
import type { Redactor } from '../job/redaction';
import type { From, Hold } from './request/room';

/** Who a request comes from. */
export interface Caller {
  /** Nobody was asked for a key. */
  open: boolean;
  /** The name of the key, where it has one. */
  name: string | null;
  role: Role;
  scopes: readonly Scope[];
  /** Tells keys without a name apart; says nothing of the key itself. Null where there is none. */
  key_hint: string | null;
}

export interface AppEnv {
  Bindings: Env;
  Variables: {
    /** Headers of whatever answer it gets. */
    headers: Record<string, string>;
    /** Echoed in `X-Request-ID` and in every error. */
    requestId: string;
    /** Whose room it takes; absent: it has brought no key. */
    from?: From;
    /** The room that its body takes, and its page of jobs. */
    held?: Hold;
    page?: Hold;
    /** Who asks; absent on routes that need no key. */
    caller?: Caller;
    /** The body of the request, and its answer before anything is redacted: what the audit log is made of. */
    sent?: unknown;
    answer?: Record<string, unknown>;
    /** What the path names, where it does so by a pseudonym. */
    named?: string;
    /** What was asked for was so already. */
    unchanged?: true;
    /** Takes out of answers what the caller may not see; absent: it may see everything. */
    redact?: Redactor;
  };
}

export type App = Hono<AppEnv>;
export type AppContext = Context<AppEnv>;

/** Has whoever sent this request the scope? */
export function may(c: AppContext, scope: Scope): boolean {
  return c.get('caller')?.scopes.includes(scope) === true;
}

/** Is nothing redacted for this caller? */
export function seesEverything({ scopes }: Caller): boolean {
  return scopes.includes('data:reveal');
}

/** May the key of this request have ended jobs removed? */
export function mayPurge(c: AppContext): boolean {
  return may(c, 'admin:purge');
}

/** The media type of the protocol's answers, without a charset. */
export const MEDIA_TYPE = 'application/openjobspec+json';

/** An answer: `headers` are added to those that every answer to this request has. */
export function respond(
  c: AppContext,
  body: BodyInit | null,
  status = 200,
  headers: Record<string, string> = {},
): Response {
  return new Response(body, { status, headers: { ...c.get('headers'), ...headers } });
}

declare const ANSWERED: unique symbol;

export interface AnswerOf<Body, Status extends number> extends Response {
  readonly [ANSWERED]: { body: Body; status: Status };
}

/**
 * An answer that holds this: what a contract promises is compared with it. Body and status are there in types only. Where the
 * status is one of several, it is an answer of each.
 */
export type Answer<Body, Status extends number = 200> = Status extends number ? AnswerOf<Body, Status> : never;

/** A JSON answer, as the caller may see it. */
export function json<Body extends object, Status extends number = 200>(
  c: AppContext,
  body: Body,
  status?: Status,
  headers?: Record<string, string>,
): Answer<Body, Status> {
  c.set('answer', body as Record<string, unknown>);
  return jsonText(c, JSON.stringify(asShown(c)(body)), status, headers);
}

/** A JSON answer that holds no payload. */
export function unredacted<Body extends object, Status extends number = 200>(
  c: AppContext,
  body: Body,
  status?: Status,
  headers?: Record<string, string>,
): Answer<Body, Status> {
  return jsonText(c, JSON.stringify(body), status, headers);
}

/** The same of an answer that is JSON text already. */
export function jsonText<Body, Status extends number = 200>(
  c: AppContext,
  text: string,
  status?: Status,
  headers: Record<string, string> = {},
): Answer<Body, Status> {
  return respond(c, text, status, { ...headers, 'Content-Type': mediaType(c) }) as Answer<Body, Status>;
}

/** An answer that is no JSON of the protocol's. */
export function media<Type extends string>(
  c: AppContext,
  body: BodyInit | null,
  type: Type,
  headers: Record<string, string> = {},
): Answer<Media<Type>> {
  return respond(c, body, 200, { ...headers, 'Content-Type': type }) as Answer<Media<Type>>;
}

/** An answer of success without a body. */
export function noContent(c: AppContext, headers: Record<string, string> = {}): Answer<null, 204> {
  return respond(c, null, 204, headers) as Answer<null, 204>;
}

/** The Python SDK asks for the protocol's type like every other, but reads only plain JSON. It is known by its library. */
const READS_PLAIN_JSON_ONLY = /^python-httpx\//i;

/** A client that takes nothing but plain JSON is told that this is what it gets. */
export function mediaType(c: AppContext): string {
  if (READS_PLAIN_JSON_ONLY.test(c.req.header('User-Agent') ?? '')) return 'application/json';
  const accepted = c.req.header('Accept')?.toLowerCase() ?? '*/*';
  const isPlain = accepted.includes('application/json') && !/\*\/\*|application\/(\*|openjobspec\+json)/.test(accepted);
  return isPlain ? 'application/json' : MEDIA_TYPE;
}

/** How the caller may see what it is told. */
export function asShown(c: AppContext): Redactor {
  return c.get('redact') ?? ((answer) => answer);
}
