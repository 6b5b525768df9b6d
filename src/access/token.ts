/** Tokens for browsers, and URLs that send one signal: JWTs (HS256) under `TOKEN_SECRET`. Nothing of them is stored. */
import { bytesOfBase64Url, utf8Bytes } from '../job/bytes';
import {
  defined,
  isObject,
  optional,
  parseObject,
  type Reader,
  readBoolean,
  readName,
  readPositive,
  readQueueName,
  readSome,
  readText,
} from '../job/envelope/fields';
import { isJobType, TYPE_RULE } from '../job/envelope/names';
import { invalidConfiguration, invalidRequest } from '../job/errors';
import { DEFAULT_QUEUE } from '../job/options';
import { SIGNAL_PATH } from '../job/signal-url';
import { readStepName } from '../job/steps';
import { refuseOthers } from '../job/unknown-members';
import { hmacKey, jwtOf, utf8Of } from './jwt';

/** What signs tokens, and where people reach this deployment. */
export interface TokenSettings {
  /** The newest first. */
  secrets: readonly string[];
  /** Without a slash at its end. */
  publicUrl?: string;
}

/** What a token allows. */
export interface TokenRights {
  job?: string;
  read?: boolean;
  signals?: string[];
  enqueue?: { type: string; queue: string; group?: string };
}

/** What a signal URL sends: the signal `name`, with one of the choices, if there are any. */
export interface SignalRights {
  job: string;
  signal: string;
  choices?: string[];
  title?: string;
}

const DAY_MS = 86_400_000;

/** The kinds of tokens, and how long each may last, ms. Sessions and logins under way are cookies. */
export const LONGEST_MS = {
  tocsin: DAY_MS,
  'tocsin:signal': 90 * DAY_MS,
  'tocsin:session': 8 * 3_600_000,
  'tocsin:login': 600_000,
} as const;
export type Audience = keyof typeof LONGEST_MS;

const DEFAULT_MS = 900_000;
/** What clocks may differ by, ms. */
const SKEW_MS = 60_000;
/** A token with the longest names that are allowed is shorter, in characters. */
const MAX_TOKEN = 16_384;

const readType = readText(isJobType, TYPE_RULE);
const readLine = (max: number) =>
  readText(
    (text) => text.trim() !== '' && text.length <= max && !/\p{Cc}/u.test(text),
    `must be a line of 1 to ${max} characters`,
  );
const readChoices = readSome(10, readLine(64));
const readTitle = readLine(200);

/** Of a signal, whose URL is recorded as the step `url:` and its name. */
const readSignalName: Reader<string> = (value, field) =>
  readStepName(`url:${readStepName(value, field)}`, field).slice(4);

/** @throws {ApiError} 400 */
export function readTokenRights(given: Record<string, unknown>): TokenRights {
  const job = optional(given, 'job', readName(255));
  const read = optional(given, 'read', readBoolean) || undefined;
  const signals = optional(given, 'signals', readSome(10, readStepName));
  const enqueue = optional(given, 'enqueue', readEnqueue);
  if ((read || signals) && job === undefined) throw invalidRequest('job', 'read and signals need a job.');
  if (!read && !signals && !enqueue) throw invalidRequest('read', 'A token needs read, signals or enqueue.');
  return defined({ job, read, signals, enqueue });
}

const readEnqueue: Reader<TokenRights['enqueue']> = (value, field) => {
  if (!isObject(value)) throw invalidRequest(field, `${field} must be an object with type, and queue and group.`);
  refuseOthers(value, ['type', 'queue', 'group']);
  return defined({
    type: readType(value.type, `${field}.type`),
    queue: optional(value, 'queue', readQueueName, `${field}.`) ?? DEFAULT_QUEUE,
    group: optional(value, 'group', readName(255), `${field}.`),
  });
};

/** @throws {ApiError} 400 */
export const readSignalRights = (given: Record<string, unknown>): SignalRights =>
  defined({
    job: readName(255)(given.job, 'job'),
    signal: readSignalName(given.signal, 'signal'),
    choices: optional(given, 'choices', readChoices),
    title: optional(given, 'title', readTitle),
  });

/** When a token ends whose duration is `given`, epoch ms. Default 15 min. @throws {ApiError} 400 */
export function readEnd(given: unknown, audience: Audience, now: number): number {
  const ms = given === undefined || given === null ? DEFAULT_MS : readPositive(given, 'expires_in');
  if (ms <= LONGEST_MS[audience]) return now + Math.ceil(ms / 1000) * 1000;
  const most = audience === 'tocsin' ? '24 hours' : '90 days';
  throw invalidRequest('expires_in', `expires_in must be at most ${most}.`);
}

/** What a token has besides its rights. */
export interface Issue {
  /** Epoch ms. */
  end: number;
  /** Its id: under it, the job of an `enqueue` token is enqueued once. */
  jti: string;
  /** The hint of the API key that makes it. */
  kid?: string | null | undefined;
}

/** Signs with the newest secret. @throws {ApiError} 500 `invalid_configuration` without a secret */
export async function signToken(
  settings: TokenSettings | undefined,
  audience: Audience,
  rights: object,
  { end, jti, kid }: Issue,
): Promise<string> {
  const secret = settings?.secrets[0] ?? missing('TOKEN_SECRET', 'a secret of at least 32 bytes');
  const claims = { aud: audience, ...rights, jti, exp: Math.floor(end / 1000) };
  return jwtOf(secret, claims, kid ? { kid } : {});
}

/** A URL that sends a signal. @throws {ApiError} 500 `invalid_configuration` */
export async function signalUrl(
  settings: TokenSettings | undefined,
  rights: SignalRights,
  how: Issue,
): Promise<string> {
  const token = await signToken(settings, 'tocsin:signal', rights, how);
  return (settings?.publicUrl ?? missing('PUBLIC_URL', 'the address of this deployment')) + SIGNAL_PATH + token;
}

function missing(variable: string, what: string): never {
  throw invalidConfiguration(`${variable} is not set: tokens need ${what}.`, { variable, missing: [variable] });
}

export interface VerifiedToken {
  claims: Record<string, unknown>;
  /** The hint of the API key that made it. */
  kid?: string;
  /** Epoch ms. */
  end: number;
}

/** A token of this audience with a right signature, expired or not; undefined: it is none, or lasts too long. */
export async function verifiedToken(
  { secrets }: TokenSettings,
  token: string,
  audience: Audience,
  now: number,
): Promise<VerifiedToken | undefined> {
  const [head = '', body = '', signature = '', ...more] = token.length > MAX_TOKEN ? [] : token.split('.');
  const [header, claims] = [head, body].map(partOf);
  const signed = decoded(signature);
  if (!header || !claims || !signed || more.length > 0) return undefined;
  // `crit` names what must be understood, and nothing is.
  if (header.alg !== 'HS256' || header.crit !== undefined || claims.aud !== audience) return undefined;
  const results = secrets.map(async (secret) =>
    crypto.subtle.verify('HMAC', await hmacKey(utf8Of(secret)), signed, utf8Of(`${head}.${body}`)),
  );
  const isSigned = (await Promise.all(results)).includes(true);
  const [{ kid }, { exp }] = [header, claims];
  if (!isSigned || typeof exp !== 'number' || !(exp * 1000 <= now + LONGEST_MS[audience] + SKEW_MS)) return undefined;
  if (kid !== undefined && typeof kid !== 'string') return undefined;
  return defined({ claims, kid, end: exp * 1000 });
}

/** Base64 with the alphabet for URLs, without padding; undefined: it is not. */
const decoded = (text: string) => (/^[\w-]+$/.test(text) && text.length % 4 !== 1 ? bytesOfBase64Url(text) : undefined);

const partOf = (part: string) => parseObject(new TextDecoder().decode(decoded(part)));

/** Has it the three parts of a JWT? */
export const isJwt = (text: string): boolean => /^[^.]+\.[^.]+\.[^.]*$/.test(text);

/** Does a JWT say that it is signed as those of this server are? */
export const isOurKind = (token: string): boolean => partOf(token.split('.', 1)[0] ?? '')?.alg === 'HS256';

/** Least length of a secret, in bytes. */
const MIN_SECRET = 32;

/** Reads the variables. @throws {ApiError} 500 `invalid_configuration`, which quotes neither of them */
export function readTokenSettings(secrets: readonly string[], url: unknown): TokenSettings {
  if (secrets.length > 2 || secrets.some((secret) => utf8Bytes(secret) < MIN_SECRET)) {
    const message = `TOKEN_SECRET must be one secret, or the new and the old one, each of ${MIN_SECRET} bytes or more.`;
    throw invalidConfiguration(message, { variable: 'TOKEN_SECRET' });
  }
  return { secrets, ...(url !== undefined && url !== '' && { publicUrl: publicUrlIn(url) }) };
}

function publicUrlIn(url: unknown): string {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined;
  const isPlain = parsed && /^https?:$/.test(parsed.protocol) && parsed.origin + parsed.pathname === parsed.href;
  if (isPlain) return parsed.href.replace(/\/+$/, '');
  const message = 'PUBLIC_URL must be an address such as https://jobs.example.com, without a query.';
  throw invalidConfiguration(message, { variable: 'PUBLIC_URL' });
}
