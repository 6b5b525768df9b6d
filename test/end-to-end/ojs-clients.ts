/**
 * Calls as unchanged clients of the protocol make them, and what they read of the answers: the admin UI, the command line tool,
 * and the SDKs. A test fails where a member is missing or has another type.
 */
import { expect } from 'vitest';
import { type Body, type Json, server, TestServer } from '../support/server';

/** As the command line tool and the SDKs ask. */
const PROTOCOL = { 'Content-Type': 'application/openjobspec+json', Accept: 'application/openjobspec+json' };
/** As the admin UI asks. */
const PLAIN = { 'Content-Type': 'application/json' };

/** A client of the server under test. */
export class OjsClient {
  constructor(private readonly headers: Record<string, string>) {}

  async call(method: string, path: string, body?: unknown, status = 200): Promise<Body> {
    return await server.ok(status, method, path, body, this.headers);
  }

  get(path: string, status = 200): Promise<Body> {
    return this.call('GET', path, undefined, status);
  }
}

export const ui = new OjsClient(PLAIN);
export const cli = new OjsClient(PROTOCOL);

/** Answers of a media type that the other tests do not expect. */
export async function plainJson(path: string): Promise<{ type: string | null; body: Json }> {
  const answer = await new TestServer().send(
    new Request(`http://localhost${path}`, { headers: { Accept: 'application/json' } }),
  );
  return { type: answer.headers.get('Content-Type'), body: (await answer.json()) as Json };
}

/** An SDK of the protocol: what its HTTP library sends, and the media type that it must be answered with. */
export class Sdk {
  constructor(
    private readonly headers: Record<string, string>,
    private readonly reads = PROTOCOL.Accept,
  ) {}

  async call(method: string, path: string, body?: unknown, status = 200): Promise<Body> {
    const answer = await server.send(
      new Request(`http://localhost${path}`, {
        method,
        headers: { ...PROTOCOL, ...this.headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
    const told = await answer.text();
    expect(answer.status, told).toBe(status);
    expect(answer.headers.get('Content-Type')).toBe(this.reads);
    return JSON.parse(told) as Body;
  }

  get(path: string): Promise<Body> {
    return this.call('GET', path);
  }
}

export const python = new Sdk({ 'User-Agent': 'python-httpx/0.28.1', 'OJS-Version': '1.0' }, 'application/json');
export const go = new Sdk({ 'User-Agent': 'Go-http-client/1.1', 'OJS-Version': '1.0' });
export const rust = new Sdk({ 'OJS-Version': '1.0.0-rc.1' });
export const java = new Sdk({ 'User-Agent': 'Java-http-client/21.0.2', 'OJS-Version': '1.0' });
export const ruby = new Sdk({ 'User-Agent': 'ojs-ruby/0.1.0 ruby/3.3.0', 'OJS-Version': '1.0.0-rc.1' });

export const text = expect.any(String);
export const number = expect.any(Number);
export const flag = expect.any(Boolean);
export const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

/** Go reads these into an `int`. */
export const integer = expect.toSatisfy((value: unknown) => Number.isInteger(value), 'a whole number');

/** A duration as clients write it. */
export const duration = expect.stringMatching(/^P/);

/** What every list says of its pages. */
export const pagination = { total: integer, page: integer, per_page: integer };

export const SIX_STATES = ['available', 'active', 'scheduled', 'retryable', 'completed', 'discarded'];

/** Counts of all states that clients read. */
export const counts = Object.fromEntries(SIX_STATES.map((state) => [state, integer]));

/** The items of a list that must not be empty. */
export function itemsOf(body: Body): Json[] {
  expect(body).toMatchObject({ items: expect.any(Array), pagination });
  expect(body.items?.length).toBeGreaterThan(0);
  return body.items as Json[];
}
