/** Operators' routes over the deployment: reset, and the retry calculator. */
import { resetAll } from '../../across/reset';
import { readConfig } from '../../config';
import { notFound } from '../../job/errors';
import { previewRetry } from '../../job/retry/preview';
import { type AppContext, json } from '../context';
import { readBody } from '../request/body';
import { post, type Route } from '../route';

/** Routes below `/ojs/v1/admin`. */
export const adminSystemRoutes: readonly Route[] = [
  post('/reset', reset, { scope: 'admin:purge' }),
  post('/retry/preview', preview, { scope: 'admin:read' }),
];

async function reset(c: AppContext): Promise<Response> {
  if (!readConfig(c.env).testHooks) throw notFound('route', c.req.path, 'TEST_HOOKS is not "true" here.');
  return json(c, { reset: true, queues: await resetAll(c.env) });
}

async function preview(c: AppContext): Promise<Response> {
  const body = await readBody(c);
  return json(c, { ...previewRetry(body, { now: Date.now(), variables: readConfig(c.env).retryVariables }) });
}
