/** The context of every handler, and its answers. */
import type { Context, Hono } from 'hono';
import type { Scope } from '../access/access';
import type { Redactor } from '../access/redaction';
import type { TokenRights } from '../access/token';
import type { Env } from '../config';
import type { Media } from '../contract/route';
import type { Session } from '../contract/session';
import { readsPlainJsonOnly } from '../ojs/answers';
import type { KnownMembers } from './request/members';
import type { From, Hold } from './request/room';

/** A token has the id and the bounds of its key. */
export interface Caller extends Omit<Session, 'authenticated' | 'redacts'> {
  /** Distinguishes keys without a name; reveals nothing of the key itself. Null without a key. */
  key_hint: string | null;
  /** Of a key made at run time: the hash of its secret. */
  key_hash?: string;
  /** Jobs that it may enqueue into each queue. */
  rate?: string;
  /** When its login ends, epoch ms. */
  end?: number;
  /** What a token allows, in the place of scopes. */
  token?: TokenRights & { jti: unknown; end: number };
}

export interface AppEnv {
  Bindings: Env;
  Variables: {
    /** Headers of whatever answer it gets. */
    headers: Record<string, string>;
    /** The application, for requests that an answer makes itself. */
    app: Hono<AppEnv>;
    /** Echoed in `X-Request-ID` and in every error. */
    requestId: string;
    /** Whose room it uses; absent: it has brought no key. */
    from?: From;
    /** The room that its body takes, and its page of jobs. */
    held?: Hold;
    page?: Hold;
    /** The caller; absent on routes that need no key. */
    caller?: Caller;
    /** The queues within the bounds of its key; absent: all. */
    queues?: string[] | undefined;
    /** What the body may have as members; absent: any. */
    members?: KnownMembers;
    /** The body of the request, and its answer before redaction: the source of the audit log. */
    sent?: unknown;
    answer?: Record<string, unknown>;
    /** The target of the path, if the path has a pseudonym. */
    named?: string;
    /** The requested state existed already. */
    unchanged?: true;
    /** Takes out of answers what the caller may not see; absent: it may see everything. */
    redact?: Redactor;
  };
}

export type App = Hono<AppEnv>;
export type AppContext = Context<AppEnv>;

export const may = (c: AppContext, scope: Scope): boolean => c.get('caller')?.scopes.includes(scope) === true;

/** Is nothing redacted for this caller? */
export const seesEverything = ({ scopes }: Caller): boolean => scopes.includes('data:reveal');

/** May the key of this request remove ended jobs? */
export const mayPurge = (c: AppContext): boolean => may(c, 'admin:purge');

/** The media type of the protocol's answers, without a charset. */
export const MEDIA_TYPE = 'application/openjobspec+json';

/** An answer: `headers` are added to those that every answer to this request has. */
export const respond = (
  c: AppContext,
  body: BodyInit | null,
  status = 200,
  headers: Record<string, string> = {},
): Response => new Response(body, { status, headers: { ...c.get('headers'), ...headers } });

declare const ANSWERED: unique symbol;

export interface AnswerOf<Body, Status extends number> extends Response {
  readonly [ANSWERED]: { body: Body; status: Status };
}

/** An answer of this type; of several statuses, an answer of each. Body and status exist in types only. */
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
export const unredacted: typeof json = (c, body, status, headers) => jsonText(c, JSON.stringify(body), status, headers);

/** {@link unredacted} for an answer that is JSON text already. */
export const jsonText = <Body, Status extends number = 200>(
  c: AppContext,
  text: string,
  status?: Status,
  headers: Record<string, string> = {},
): Answer<Body, Status> =>
  respond(c, text, status, { ...headers, 'Content-Type': mediaType(c) }) as Answer<Body, Status>;

/** An answer that is not the protocol's JSON. */
export const media = <Type extends string>(
  c: AppContext,
  body: BodyInit | null,
  type: Type,
  headers: Record<string, string> = {},
): Answer<Media<Type>> => respond(c, body, 200, { ...headers, 'Content-Type': type }) as Answer<Media<Type>>;

/** An answer of success without a body. */
export const noContent = (c: AppContext, headers: Record<string, string> = {}): Answer<null, 204> =>
  respond(c, null, 204, headers) as Answer<null, 204>;

/** A client that accepts only plain JSON gets that media type. */
export function mediaType(c: AppContext): string {
  if (readsPlainJsonOnly(c)) return 'application/json';
  const accepted = c.req.header('Accept')?.toLowerCase() ?? '*/*';
  const isPlain = accepted.includes('application/json') && !/\*\/\*|application\/(\*|openjobspec\+json)/.test(accepted);
  return isPlain ? 'application/json' : MEDIA_TYPE;
}

/** The view of a value for the caller. */
export const asShown = (c: AppContext): Redactor => c.get('redact') ?? ((answer) => answer);
