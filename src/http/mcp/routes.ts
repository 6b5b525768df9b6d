/** The Model Context Protocol over HTTP: each request is one message, and its answer is JSON. */
import { mcp } from '../../contract/mcp';
import { parseExactly } from '../../job/envelope/exact';
import { parseJson } from '../../job/envelope/json';
import { MAX_ENVELOPE_BYTES } from '../../job/envelope/names';
import { apiErrorData } from '../../job/errors';
import { tools } from '../../mcp/built';
import { answer, failed } from '../../mcp/core';
import { type Answer, type AppContext, type Caller, MEDIA_TYPE, respond, unredacted } from '../context';
import { readJson } from '../request/body';
import { wantsParam } from '../request/query';
import { serve } from '../route';
import { unauthorized } from '../session/identify';
import { callTool } from './call';

export const mcpRoutes = serve(mcp, { answer: post, answerBelow: post });

async function post(c: AppContext) {
  const { open, scopes, bounds } = c.get('caller') as Caller;
  if (!open && !c.req.header('Authorization')) throw unauthorized('Agents send their key as Authorization.');
  const readOnly = wantsParam(c, 'read_only');
  const offered = tools.filter(({ tool, scope, bound }) => {
    return scopes.includes(scope) && (bound || !bounds) && (tool.annotations.readOnlyHint || !readOnly);
  });
  const caller = {
    tools: offered.map(({ tool }) => tool),
    call: (name: string, given: Record<string, unknown>) => callTool(c, name, given),
    header: (name: string) => c.req.header(name),
  };
  const read = (text: string) => parseJson(text, parseExactly);
  const sent = readJson(c, MAX_ENVELOPE_BYTES, ['application/json', MEDIA_TYPE], read);
  const { status, body } = await sent.then((message) => answer(message, caller), unreadable);
  return body ? unredacted(c, body, status as 200 | 400 | 404) : (respond(c, null, 202) as Answer<null, 202>);
}

function unreadable(error: unknown) {
  const data = apiErrorData(error);
  if (data?.status !== 400) throw error;
  return failed(null, -32700, data.message, 400);
}
