/** An identity provider: its keys, what it signs, and how it answers the queue's `fetch`. */
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { afterEach, beforeEach, vi } from 'vitest';

type Pair = Awaited<ReturnType<typeof generateKeyPair>> & { alg: string };

/** A request as it arrived. */
interface Arrival {
  path: string;
  form: Record<string, string>;
  headers: Headers;
}

export class Issuer {
  readonly arrivals: Arrival[] = [];
  private readonly pairs = new Map<string, Pair>();
  /** Keys that its set names; one that is not there still signs. */
  published: string[] = [];
  /** What it does instead of answering. */
  down = false;
  /** Members that its discovery document has otherwise. */
  document: Record<string, unknown> = {};
  /** The answer to a code: a status, or claims of the ID token. */
  answer: (form: Record<string, string>) => number | JWTPayload = () => 400;

  constructor(
    readonly url = 'https://id.example/realm',
    readonly jwks = '/realm/keys',
  ) {}

  /** Makes a key, and publishes it. */
  async addKey(kid: string, alg = 'RS256'): Promise<void> {
    this.pairs.set(kid, { ...(await generateKeyPair(alg, { extractable: true })), alg });
    this.published.push(kid);
  }

  pair(kid: string): Pair {
    const pair = this.pairs.get(kid);
    if (!pair) throw new Error(`no key ${kid}`);
    return pair;
  }

  /** A JWT that is valid, unless told otherwise. */
  async sign(claims: Record<string, unknown> = {}, kid = 'one', header: object = {}): Promise<string> {
    const { alg, privateKey } = this.pair(kid);
    const now = Math.floor(Date.now() / 1_000);
    const all = { iss: this.url, aud: 'jobs', sub: 'u-1', iat: now, exp: now + 3_600, ...claims };
    return await new SignJWT(all)
      .setProtectedHeader({ alg, kid, ...header })
      .sign(privateKey, { crit: { exp2: true } });
  }

  /** Answers all that the queue fetches, until mocks are restored. */
  listen(): this {
    vi.spyOn(globalThis, 'fetch').mockImplementation((...given) => this.fetch(new Request(...given)));
    return this;
  }

  /** It listens in each test of this file, as it was at the start; what the queue logs of it is not shown. */
  listenInEachTest(): void {
    beforeEach(() => {
      this.listen();
      Object.assign(this, { down: false, document: {} });
      this.arrivals.length = 0;
      vi.spyOn(console, 'warn').mockImplementation(() => undefined);
      vi.spyOn(console, 'error').mockImplementation(() => undefined);
    });
    afterEach(() => {
      vi.restoreAllMocks();
      vi.useRealTimers();
    });
  }

  asked(path: string): number {
    return this.arrivals.filter((arrival) => arrival.path === path).length;
  }

  private async fetch(request: Request): Promise<Response> {
    const { origin, pathname: path } = new URL(request.url);
    const form =
      request.method === 'POST' ? (Object.fromEntries(await request.formData()) as Record<string, string>) : {};
    this.arrivals.push({ path, form, headers: request.headers });
    if (this.down || origin !== new URL(this.url).origin) throw new TypeError('connection refused');
    if (path === this.jwks)
      return Response.json({ keys: await Promise.all(this.published.map((kid) => this.jwk(kid))) });
    if (path === '/realm/.well-known/openid-configuration') {
      const { url } = this;
      const addresses = { jwks_uri: `${origin}${this.jwks}`, authorization_endpoint: `${url}/auth?theme=dark` };
      return Response.json({ issuer: url, ...addresses, token_endpoint: `${url}/token`, ...this.document });
    }
    if (path !== '/realm/token') return new Response('no such page', { status: 404 });
    const answer = this.answer(form);
    if (typeof answer === 'number') return Response.json({ error: 'invalid_grant' }, { status: answer });
    return Response.json({ token_type: 'Bearer', access_token: 'a', id_token: await this.sign(answer) });
  }

  private async jwk(kid: string) {
    const { publicKey, alg } = this.pair(kid);
    return { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' };
  }
}
