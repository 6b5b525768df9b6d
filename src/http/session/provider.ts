/**
 * An identity provider: its keys and addresses, cached as data by each isolate. A request never waits for what another
 * one fetches: the runtime forbids that. Imported at the first login, so that other deployments do not load `jose`.
 */
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose';
import { isSecureUrl, type LoginSettings } from '../../access/login';
import { readText } from '../../dispatch/body';
import { isWithin } from '../../durable/backoff';
import { parseObject } from '../../job/envelope/fields';
import { apiErrorData, unavailable } from '../../job/errors';
import { getOrInsert } from '../../job/get-or-insert';
import { quote } from '../../job/text';

/** The age at which keys are asked for again, ms. */
const KEYS_MS = 600_000;
/** Minimum interval between questions for an unknown key, or without an answer, ms. */
const AGAIN_MS = 30_000;
/** Keys count for this long without an answer, ms. */
const USABLE_MS = 86_400_000;
const TIMEOUT_MS = 5_000;
const MAX_BYTES = 262_144;
/** What clocks may differ by, seconds. */
const SKEW = 60;
const ALGORITHMS = ['RS256', 'ES256', 'EdDSA'];

/** What a provider publishes; its discovery document is empty where `LOGIN` needs nothing of it. */
interface Metadata {
  keys: ReturnType<typeof createLocalJWKSet>;
  document: Record<string, unknown>;
}

class Provider {
  private metadata: Metadata | undefined;
  /** When the last request began that got an answer; and when the last one of all did, epoch ms. */
  private loadedAt = Number.NEGATIVE_INFINITY;
  private askedAt = Number.NEGATIVE_INFINITY;
  private failed = false;

  constructor(private readonly login: LoginSettings) {}

  /** The claims of a JWT for this audience; undefined: it is not valid. @throws {ApiError} 503 */
  async claimsOf(jwt: string, audience = this.login.audience): Promise<JWTPayload | undefined> {
    const now = Date.now();
    const { issuer } = this.login;
    const rules = { issuer, audience, algorithms: ALGORITHMS, clockTolerance: SKEW, requiredClaims: ['exp'] };
    try {
      return (await jwtVerify(jwt, (await this.current(now)).keys, { ...rules, currentDate: new Date(now) })).payload;
    } catch (error) {
      if (apiErrorData(error)) throw error;
      if (error instanceof errors.JWKSNoMatchingKey && (await this.load(now)))
        return await this.claimsOf(jwt, audience);
      if (!(error instanceof errors.JOSEError)) console.error('tocsin: a key of the identity provider fails:', error);
      return undefined;
    }
  }

  /** An address of the discovery document. @throws {ApiError} 503 */
  async addressOf(name: 'authorization_endpoint' | 'token_endpoint'): Promise<string> {
    const { document } = await this.current(Date.now());
    if (isSecureUrl(document[name])) return document[name];
    throw unreachable();
  }

  /** The scopes to request, as far as the provider supports them: the name, and the claim of the roles. */
  async scopes(): Promise<string> {
    const { scopes_supported: has } = (await this.current(Date.now())).document;
    const wanted = ['profile', 'email', ...(Array.isArray(has) ? [this.login.roles.claim] : [])];
    return ['openid', ...wanted.filter((scope) => !Array.isArray(has) || has.includes(scope))].join(' ');
  }

  /** The answer to a code; undefined: it is refused. @throws {ApiError} 503 */
  async redeem(form: Record<string, string>): Promise<Record<string, unknown> | undefined> {
    const { id, secret } = this.login.client ?? { id: '', secret: '' };
    const { token_endpoint_auth_methods_supported: ways = [] } = (await this.current(Date.now())).document;
    const isInBody =
      Array.isArray(ways) && ways.includes('client_secret_post') && !ways.includes('client_secret_basic');
    const body = new URLSearchParams({ ...form, ...(isInBody && { client_id: id, client_secret: secret }) });
    const basic = `Basic ${btoa([id, secret].map(encodeURIComponent).join(':'))}`;
    const headers = { ...(!isInBody && { Authorization: basic }) };
    try {
      return await fetchJson(await this.addressOf('token_endpoint'), { method: 'POST', headers, body });
    } catch (error) {
      console.error('tocsin: the identity provider takes no code:', error);
      if (error instanceof Refused) return undefined;
      throw apiErrorData(error) ? error : unreachable();
    }
  }

  private async current(now: number): Promise<Metadata> {
    if (!isWithin(this.loadedAt, KEYS_MS, now)) await this.load(now);
    if (this.metadata && isWithin(this.loadedAt, USABLE_MS, now)) return this.metadata;
    throw unreachable();
  }

  /** @returns whether there is newer metadata now */
  private async load(now: number): Promise<boolean> {
    // The first requests of an isolate come together, and each needs an answer of its own.
    const isFirst = !this.failed && !isWithin(this.loadedAt, USABLE_MS, now);
    if (!isFirst && isWithin(this.askedAt, AGAIN_MS, now)) return false;
    this.askedAt = now;
    try {
      this.metadata = await metadataOf(this.login);
      this.loadedAt = now;
      this.failed = false;
      return true;
    } catch (error) {
      console.error('tocsin: the identity provider cannot be asked:', error);
      this.failed = true;
      return false;
    }
  }
}

async function metadataOf({ issuer, jwks, client }: LoginSettings): Promise<Metadata> {
  const isNeeded = jwks === undefined || client !== undefined;
  const document = isNeeded ? await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`) : {};
  if (isNeeded && document.issuer !== issuer) throw new Error(`It calls itself ${document.issuer}, not ${issuer}.`);
  const address = jwks ?? document.jwks_uri;
  if (!isSecureUrl(address)) throw new Error('Its document has no https address of keys.');
  return { keys: createLocalJWKSet((await fetchJson(address)) as unknown as JSONWebKeySet), document };
}

/** Thrown where the provider says that the request is wrong. */
class Refused extends Error {}

async function fetchJson(url: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  const headers = { Accept: 'application/json', ...(init.headers as Record<string, string>) };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(url, { ...init, headers, redirect: 'manual', signal });
  const { text, isWhole } = await readText(response, MAX_BYTES);
  const answer = isWhole && response.ok ? parseObject(text) : undefined;
  if (answer) return answer;
  const message = `${new URL(url).host} answers ${response.status}: ${quote(text)}`;
  throw [400, 401, 403].includes(response.status) ? new Refused(message) : new Error(message);
}

const unreachable = () => unavailable('The identity provider cannot be asked at the moment.', AGAIN_MS / 1_000);

const providers = new WeakMap<LoginSettings, Provider>();

export const providerOf = (login: LoginSettings): Provider => getOrInsert(providers, login, () => new Provider(login));
