/** The Model Context Protocol: a message of JSON-RPC, and its answer. The tools are in `src/mcp/tools.ts`. */
import type { ErrorAnswer } from './errors';
import { post, type RouteRules } from './route';

type Json = Record<string, unknown>;

/** `initialize`, `ping`, `server/discover`, `tools/list` or `tools/call`. Without an id: a notification. */
export type McpMessage = { jsonrpc: '2.0'; id?: string | number; method: string; params?: Json };

type McpError = { code: number; message: string; data?: Json };

/** The id is that of the message; null: it had none that could be read. */
export type McpAnswer = { jsonrpc: '2.0'; id: string | number | null; result?: Json; error?: McpError };

/** `read_only`: only the tools that change nothing. */
type Serving = {
  query: { read_only?: boolean };
  body: McpMessage;
  200: McpAnswer;
  202: null;
  400: McpAnswer | ErrorAnswer;
  404: McpAnswer;
};

const RULES: RouteRules = { audit: 'none', scope: 'key', bound: 'any', ownPages: true };

/** From the root on. The second place is for Workers that have pages of their own, and hand over `/ojs/` only. */
export const mcp = {
  /** Answers a message of the Model Context Protocol. */
  answer: post<Serving>('/mcp', RULES),
  /** Answers a message of the Model Context Protocol, at its second path. */
  answerBelow: post<Serving>('/ojs/mcp', RULES),
};
