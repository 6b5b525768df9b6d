/** Logins by an identity provider: the variable `LOGIN`, and what the claims of a person allow. */
import { BOUNDS, type Bounds, readBounds } from '../job/bounds';
import { defined, isObject, optional, parseObject, readObject, readSome, readText } from '../job/envelope/fields';
import { apiErrorData, invalidConfiguration, invalidRequest } from '../job/errors';
import { didYouMean } from '../job/near-miss';
import { own, textOf } from '../job/own';
import { cut, quote } from '../job/text';
import { orThrow } from '../job/thrown';
import { ROLES, type Scope } from './access';

export interface LoginSettings {
  /** The claims `iss` and `aud` of its JWTs. */
  issuer: string;
  audience: string;
  /** The address of its keys; absent: as its discovery document says. */
  jwks?: string;
  /** The header in which a proxy sends the JWT. */
  header?: string;
  /** The claim that names a person. */
  name: string;
  /** Logs browsers in by the authorization code flow. */
  client?: { id: string; secret: string };
  roles: Roles;
}

interface Roles {
  /** The claim that holds the values below. */
  claim: string;
  given: Partial<Record<(typeof RANKS)[number], string[]>>;
  bounds: Record<string, Bounds>;
}

/** Of several roles the first one counts. */
const RANKS = ['admin', 'operator', 'viewer'] as const;
/** In a role: every person that the provider lets in. */
const EVERYBODY = '*';
const MAX_VALUES = 100;
const MAX_NAME = 100;

const readLine = readText(
  (text) => text.trim() !== '' && text.length <= 255 && !/\p{Cc}/u.test(text),
  'must be a line of 1 to 255 characters',
);
const readValues = readSome(MAX_VALUES, readLine);
const readHost = readText(
  (text) => /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(text),
  'must be a host such as team.cloudflareaccess.com',
);
const readHeader = readText(
  (text) => /^(?!(?:authorization|cookie|host)$)[\w-]{1,100}$/i.test(text),
  'must be the name of a header that only the proxy sets',
);
const readUrl = readText(isSecureUrl, 'must be an https address');
const readIssuer = readText((text) => isSecureUrl(text) && !/[?#]/.test(text), 'must be an https address');

/** Is it an address at which TLS, or this machine, protects the answer? */
export function isSecureUrl(text: unknown): text is string {
  if (typeof text !== 'string' || !URL.canParse(text)) return false;
  const { protocol, hostname, username } = new URL(text);
  const isSafe = protocol === 'https:' || (protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname));
  return isSafe && username === '';
}

/** @param secret `LOGIN_SECRET`; null: not known, not checked @throws {ApiError} 500 `invalid_configuration` */
export function readLoginSettings(given: unknown, secret: unknown): LoginSettings | undefined {
  if (given === undefined || given === null || given === '') return undefined;
  return orThrow(
    () => settingsIn(readObject(typeof given === 'string' ? parseObject(given) : given, 'the value'), secret),
    (error) =>
      invalidConfiguration(`LOGIN: ${apiErrorData(error)?.message ?? 'it cannot be read.'}`, { variable: 'LOGIN' }),
  );
}

function settingsIn(given: Record<string, unknown>, secret: unknown): LoginSettings {
  const common = { audience: readLine(given.audience, 'audience'), roles: readRoles(given.roles) };
  const id = optional(given, 'client_id', readLine);
  if (secret !== null && (id !== undefined) !== (textOf(secret) !== undefined)) {
    throw invalidRequest('client_id', 'client_id and the secret LOGIN_SECRET need each other.');
  }
  if (given.access !== undefined) {
    onlyKnown(given, ['access', 'audience', 'roles']);
    const issuer = `https://${readHost(given.access, 'access')}`;
    const header = 'Cf-Access-Jwt-Assertion';
    return { ...common, issuer, jwks: `${issuer}/cdn-cgi/access/certs`, header, name: 'email' };
  }
  onlyKnown(given, ['access', 'issuer', 'audience', 'jwks', 'header', 'name', 'client_id', 'roles']);
  return defined({
    ...common,
    issuer: readIssuer(given.issuer, 'issuer'),
    jwks: optional(given, 'jwks', readUrl),
    header: optional(given, 'header', readHeader),
    name: optional(given, 'name', readLine) ?? 'email',
    client: id === undefined ? undefined : { id, secret: secret as string },
  });
}

function readRoles(value: unknown): Roles {
  const { claim, bounds = {}, ...roles } = readObject(value, 'roles');
  onlyKnown(roles, RANKS, 'roles.');
  const given = defined(Object.fromEntries(RANKS.map((role) => [role, optional(roles, role, readValues, 'roles.')])));
  if (Object.keys(given).length === 0) {
    throw invalidRequest('roles', `roles must list values of the claim for one of ${RANKS.join(', ')}.`);
  }
  const within = Object.entries(readObject(bounds, 'roles.bounds')).map(([name, entry]) => [
    name,
    boundsIn(name, entry),
  ]);
  return { claim: readLine(claim, 'roles.claim'), given, bounds: Object.fromEntries(within) };
}

function boundsIn(name: string, value: unknown): Bounds {
  const field = `roles.bounds.${quote(name)}`;
  const given = readObject(value, field);
  onlyKnown(given, BOUNDS, `${field}.`);
  const bounds = readBounds(given);
  if (bounds && name !== EVERYBODY) return bounds;
  throw invalidRequest(field, `${field} must be a value of the claim with one of ${BOUNDS.join(', ')}.`);
}

function onlyKnown(given: Record<string, unknown>, known: readonly string[], at = ''): void {
  const other = Object.keys(given).find((name) => !known.includes(name));
  if (other === undefined) return;
  const message = `${at}${quote(other)} is not known here; use ${known.join(', ')}.${didYouMean(other, known)}`;
  throw invalidRequest(other, message);
}

/** A person that the provider has authenticated. */
export interface Person {
  subject: string;
  name: string;
  /** Those values of the claim that `LOGIN` names. */
  values: string[];
}

/** The person of a valid JWT; undefined: it names none. */
export function personIn({ name: named, roles }: LoginSettings, claims: Record<string, unknown>): Person | undefined {
  // Cloudflare Access leaves `sub` empty for programs.
  const subject = textOf(claims.sub) ?? textOf(claims.common_name);
  if (subject === undefined || subject.length > 255) return undefined;
  const name = cut(textOf(own(claims, named)) ?? subject, MAX_NAME);
  const { given, bounds } = roles;
  const known = new Set([...Object.values(given).flat(), ...Object.keys(bounds)]);
  const values = [valueAt(claims, roles.claim)].flat().filter((value) => typeof value === 'string' && known.has(value));
  return { subject, name, values: [...new Set(values as string[])] };
}

/** A claim by its name, or by a path such as `realm_access.roles`. */
function valueAt(claims: Record<string, unknown>, claim: string): unknown {
  const step = (value: unknown, name: string) => (isObject(value) ? own(value, name) : undefined);
  return own(claims, claim) ?? claim.split('.').reduce(step, claims);
}

/** What a person may do; undefined: nothing. */
export function grantOf(
  { roles: { given, bounds } }: LoginSettings,
  values: readonly string[],
): { role: keyof typeof ROLES; scopes: readonly Scope[]; bounds?: Bounds } | undefined {
  const isNamed = (value: string) => value === EVERYBODY || values.includes(value);
  const role = RANKS.find((name) => given[name]?.some(isNamed));
  const named = values.flatMap((value) => own(bounds, value) ?? []);
  return role && defined({ role, scopes: ROLES[role], bounds: joined(named as Bounds[]) });
}

/** Bounds of one and the same kind are joined. Others have no union that is bounds: the first ones count. */
function joined(all: readonly Bounds[]): Bounds | undefined {
  const [kind, ...others] = new Set(all.flatMap((bounds) => Object.keys(bounds) as (keyof Bounds)[]));
  return kind && others.length === 0 ? { [kind]: all.flatMap((bounds) => bounds[kind] ?? []) } : all[0];
}
