/** The Model Context Protocol: a message of JSON-RPC, and its answer. The tools are in `src/mcp/tools.ts`. */
import type { ErrorAnswer } from './errors';
import { DATA, post } from './route';

export interface McpMessage {
  jsonrpc: '2.0';
  /** Absent: a notification, which gets no answer. */
  id?: string | number;
  /** `initialize`, `ping`, `server/discover`, `tools/list` or `tools/call`. */
  method: string;
  params?: Record<string, unknown>;
}

export interface McpAnswer {
  jsonrpc: '2.0';
  /** That of the message; null: it had none that could be read. */
  id: string | number | null;
  result?: Record<string, unknown>;
  error?: { code: number; message: string; data?: Record<string, unknown> };
}

interface McpQuery {
  /** Only the tools that change nothing. */
  read_only?: boolean;
}

type Serving = {
  query: McpQuery;
  body: McpMessage;
  200: McpAnswer;
  202: null;
  400: McpAnswer | ErrorAnswer;
  404: McpAnswer;
};

/** From the root on. The second place is for Workers that have pages of their own, and hand over `/ojs/` only. */
export const mcp = {
  /** Answers a message of the Model Context Protocol. */
  answer: post<Serving>('/mcp', { ...DATA, scope: 'key', bound: 'any' }),
  /** Answers a message of the Model Context Protocol, at its second path. */
  answerBelow: post<Serving>('/ojs/mcp', { ...DATA, scope: 'key', bound: 'any' }),
};
