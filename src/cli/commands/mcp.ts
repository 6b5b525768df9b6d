import { createInterface } from 'node:readline';
import { authorization } from '../../client/transport';
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
    const headers = { 'Content-Type': type, Accept: type, ...authorization(key) };
    const pass = async (line: string) => {
      try {
        const answer = await (await fetch(path, { method: 'POST', headers, body: line })).text();
        const { jsonrpc, error } = JSON.parse(answer || '{"jsonrpc":"2.0"}');
        if (jsonrpc === undefined) throw new Error(error?.message);
        if (answer) terminal.out(`${answer}\n`);
      } catch (thrown) {
        const { id } = JSON.parse(line);
        const error = { code: -32000, message: `${url} did not answer the message: ${reasonOf(thrown)}` };
        if (id !== undefined) terminal.out(`${JSON.stringify({ jsonrpc: '2.0', id, error })}\n`);
      }
    };
    // Where no queue answers, a line that is not JSON gets no answer either.
    const running: Promise<void>[] = [];
    for await (const line of createInterface({ input: process.stdin })) running.push(pass(line).catch(() => undefined));
    await Promise.all(running);
    return undefined;
  },
);
