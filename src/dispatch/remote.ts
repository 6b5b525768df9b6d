/** Calls a URL instead of a service binding: signed, and possibly unreachable; answers mean the same. */
import { v7 as uuidv7 } from 'uuid';
import { type Signature, signatureHeaders } from './signature';

/** Concurrent calls to URLs, not bindings, per object: the platform queues a seventh while its time limit runs. */
export const MAX_CONNECTIONS = 6;

/** Cloudflare's answers for an unreachable origin (down, TLS, DNS): no handler has seen the call. */
const UNREACHED: ReadonlySet<number> = new Set([521, 522, 523, 525, 526, 530]);

const USER_AGENT = 'Tocsin/1';

export interface Signing {
  signatures: readonly Signature[];
  /** The current one, and the one before while it is being replaced. */
  secrets: readonly string[];
}

export interface RemoteContext {
  fetch(request: Request): Promise<Response>;
  /** Epoch ms. */
  now(): number;
  newId(): string;
}

const WORLD: RemoteContext = {
  fetch: (request) => fetch(request),
  now: () => Date.now(),
  newId: () => `del_${uuidv7()}`,
};

export class Remote {
  /** @param url absent: each request names its own */
  constructor(
    private readonly signing: Signing,
    private readonly url?: string,
    private readonly world: RemoteContext = WORLD,
  ) {}

  /** @throws {Error} when there was no answer from there */
  async fetch(...call: [url: string, init: RequestInit]): Promise<Response> {
    const request = new Request(...call);
    const url = this.url ?? request.url;
    const body = await request.text();
    const headers = new Headers(request.headers);
    // A call with a single job has the id of its delivery. No call is sent twice, so each of the others gets a new one.
    const id = headers.get('X-OJS-Delivery-ID') ?? this.world.newId();
    const { signatures, secrets } = this.signing;
    const signed = await signatureHeaders(signatures, secrets, { url, id, body, at: this.world.now() });
    for (const [name, value] of Object.entries(signed)) headers.set(name, value);
    headers.set('User-Agent', USER_AGENT);
    // A redirect is an answer: its target was not checked, and the job would not be sent there.
    const init: RequestInit = { method: 'POST', headers, body, redirect: 'manual', signal: request.signal };
    const response = await this.world.fetch(new Request(url, init));
    if (!UNREACHED.has(response.status)) return response;
    await response.body?.cancel();
    throw new Error(`${new URL(url).host} could not be reached (${response.status}).`);
  }
}
