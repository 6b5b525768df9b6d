/** The Model Context Protocol over HTTP: each request is one message, and its answer is JSON. */
import { readAccess } from '../../config';
import { mcp } from '../../contract/mcp';
import { parseExactly } from '../../job/envelope/exact';
import { parseJson } from '../../job/envelope/json';
import { MAX_ENVELOPE_BYTES } from '../../job/envelope/names';
import { apiErrorData, refusal } from '../../job/errors';
import { tools } from '../../mcp/built';
import { answer, failed } from '../../mcp/core';
import { type Answer, type AppContext, type Caller, MEDIA_TYPE, respond, unredacted } from '../context';
import { readJson } from '../request/body';
import { wantsParam } from '../request/query';
import { serve } from '../route';
import { isOwnOrigin, unauthorized } from '../session/identify';
import { callTool } from './call';

export const mcpRoutes = serve(mcp, { answer: post, answerBelow: post });

async function post(c: AppContext) {
  const caller = c.get('caller') as Caller;
  refuseForeign(c);
  if (!caller.open && !c.req.header('Authorization')) throw unauthorized('Agents send their key as Authorization.');
  const readOnly = wantsParam(c, 'read_only');
  const offered = tools.filter(({ tool, scope, bound }) => {
    return caller.scopes.includes(scope) && (bound || !caller.bounds) && (tool.annotations.readOnlyHint || !readOnly);
  });
  const { status, body } = await read(c).then(
    (message) =>
      answer(message, {
        tools: offered.map(({ tool }) => tool),
        call: (name, given) => callTool(c, name, given),
        header: (name) => c.req.header(name),
      }),
    (error) => {
      const data = apiErrorData(error);
      if (data?.status !== 400) throw error;
      return failed(null, -32700, data.message, 400);
    },
  );
  return body ? unredacted(c, body, status as 200 | 400 | 404) : (respond(c, null, 202) as Answer<null, 202>);
}

const read = (c: AppContext) =>
  readJson(c, MAX_ENVELOPE_BYTES, ['application/json', MEDIA_TYPE], (text) => parseJson(text, parseExactly));

/** A page of another origin could use the key of its reader's agent. @throws {ApiError} 403 */
function refuseForeign(c: AppContext): void {
  const origin = c.req.header('Origin');
  if (origin === undefined || isOwnOrigin(c, origin) || readAccess(c.env).origins.has(origin)) return;
  const hint = 'Name the origin in the variable ALLOWED_ORIGINS.';
  throw refusal(403, 'forbidden', `Pages of ${origin} may not call tools.`, {
    details: { field: 'Origin', origin },
    hint,
  });
}
