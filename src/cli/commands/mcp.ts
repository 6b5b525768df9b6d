import { createInterface } from 'node:readline';
import { action } from '../command';
import { reasonOf } from '../failure';

const FLAGS = { readOnly: ['--read-only', 'offer only the tools that change nothing'] } as const;

/** Passes each message, one a line, to the deployment, which answers it like those over HTTP. */
export const mcp = action(
  'mcp',
  'serve the tools for agents over stdio, until the input ends',
  { flags: FLAGS },
  async ({ endpoint: { url, key }, terminal, members }) => {
    const path = `${url.replace(/\/+$/, '')}/ojs/mcp${members.readOnly ? '?read_only=true' : ''}`;
    const type = 'application/json';
    const headers = {
      'Content-Type': type,
      Accept: type,
      ...(key !== undefined && { Authorization: `Bearer ${key}` }),
    };
    const pass = async (body: string) => {
      const response = await fetch(path, { method: 'POST', headers, body });
      const text = await response.text();
      if (response.status === 202) return;
      const { jsonrpc, error } = JSON.parse(text) as { jsonrpc?: string; error?: { message: string } };
      if (jsonrpc === undefined) throw new Error(error?.message);
      terminal.out(`${text}\n`);
    };
    const running: Promise<void>[] = [];
    for await (const line of createInterface({ input: process.stdin })) {
      running.push(
        pass(line).catch((thrown: unknown) => {
          const error = { code: -32000, message: `${url} did not answer the message: ${reasonOf(thrown)}` };
          const id = idIn(line);
          if (id !== undefined) terminal.out(`${JSON.stringify({ jsonrpc: '2.0', id, error })}\n`);
        }),
      );
    }
    await Promise.all(running);
    return undefined;
  },
);

/** Undefined: the message is a notification, or cannot be read. */
function idIn(line: string): unknown {
  try {
    return (JSON.parse(line) as { id?: unknown }).id;
  } catch {
    return undefined;
  }
}
