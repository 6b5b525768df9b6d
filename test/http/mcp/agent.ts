/** An agent, as it speaks: messages of JSON-RPC to `POST /mcp`. */
import { env } from 'cloudflare:workers';
import { expect } from 'vitest';
import type { Env } from '../../../src/config';
import { createApp } from '../../../src/http/app';
import type { Json } from '../../support/server';

export const MODERN = '2026-07-28';
export const LEGACY = '2025-11-25';
const META = 'io.modelcontextprotocol';

/** What the revision 2026-07-28 wants in each request. */
export const modern = (params: Json = {}, revision: unknown = MODERN): Json => ({
  ...params,
  _meta: { [`${META}/protocolVersion`]: revision, [`${META}/clientCapabilities`]: {} },
});

export interface Replied {
  status: number;
  text: string;
  body: { id?: unknown; result?: Json; error?: { code: number; message: string; data?: Json } };
}

export class Agent {
  private readonly app = createApp();

  constructor(
    private readonly key?: string,
    private readonly variables: Json = {},
  ) {}

  fetch(request: Request): Response | Promise<Response> {
    return this.app.fetch(request, { ...env, ...this.variables } as unknown as Env);
  }

  /** Sends a body as it is. */
  async post(body: string, headers: Record<string, string> = {}, path = '/mcp'): Promise<Replied> {
    const request = new Request(`http://localhost${path}`, {
      method: 'POST',
      body,
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...(this.key !== undefined && { Authorization: `Bearer ${this.key}` }),
        ...headers,
      },
    });
    const response = await this.fetch(request);
    const text = await response.text();
    if (text !== '') expect(response.headers.get('Content-Type')).toBe('application/json');
    return { status: response.status, text, body: text === '' ? {} : JSON.parse(text) };
  }

  send(method: string, params?: Json, headers?: Record<string, string>, path?: string): Promise<Replied> {
    return this.post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, ...(params && { params }) }), headers, path);
  }

  /** The names of the tools that it is offered. */
  async tools(path?: string): Promise<Json[]> {
    return (await this.send('tools/list', undefined, {}, path)).body.result?.tools as Json[];
  }

  /** The whole result of a tool. */
  async result(name: string, given: Json = {}): Promise<Json> {
    const { status, text, body } = await this.send('tools/call', { name, arguments: given });
    expect([status, body.error], text).toEqual([200, undefined]);
    const { content, structuredContent } = body.result as { content: Json[]; structuredContent: Json };
    expect(content).toEqual([{ type: 'text', text: JSON.stringify(structuredContent) }]);
    return body.result as Json;
  }

  /** What a tool says that succeeds. */
  async call(name: string, given: Json = {}): Promise<Json> {
    const result = await this.result(name, given);
    expect(result.isError, JSON.stringify(result.structuredContent)).toBeUndefined();
    return result.structuredContent as Json;
  }

  /** What a tool says that is refused. */
  async refusal(name: string, given: Json = {}): Promise<Json> {
    const { isError, structuredContent } = await this.result(name, given);
    expect(isError, JSON.stringify(structuredContent)).toBe(true);
    expect(Object.keys(structuredContent as Json)).toEqual(['code', 'message', 'hint']);
    return structuredContent as Json;
  }

  /** Calls a tool that writes, and confirms what it would do. */
  async confirmed(name: string, given: Json): Promise<Json> {
    const { confirm } = await this.call(name, given);
    return await this.call(name, { ...given, confirm });
  }
}
