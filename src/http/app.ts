/** The HTTP application: what surrounds every request, and the routes. */
import { Hono } from 'hono';
import { METHOD_NAME_ALL } from 'hono/router';
import type { App, AppEnv } from './context';
import { answerError, answerNoRoute } from './errors';
import { audit } from './middleware/audit';
import { authentication, everything } from './middleware/auth';
import { configuration, type Ready } from './middleware/configuration';
import { cors, foreignPages, preflight } from './middleware/cors';
import { redaction } from './middleware/redaction';
import { refusedHeaders } from './middleware/refused-headers';
import { requestId } from './middleware/request-id';
import { protocolVersion } from './middleware/version';
import { releaseBody } from './request/held';
import { METHODS } from './route';
import { ROUTES } from './routes';
import { frontDoor } from './ui/routes';

/** Who is asked for a key. */
export interface AppOptions {
  /** Nobody: the requests come from code of this account, over a binding that the network cannot reach. */
  trusted?: boolean;
  /** What must have happened before a request is served. */
  ready?: Ready;
}

/** Builds the application. Its order is a rule: an answer of any kind has an id, a version and CORS headers. */
export function createApp({ trusted = false, ready }: AppOptions = {}): App {
  const app: App = new Hono<AppEnv>();
  const access = trusted ? [everything] : [foreignPages, preflight, authentication];
  const outer = [releaseBody, requestId, cors, protocolVersion, frontDoor];
  app.use(...outer, ...access, configuration(ready), redaction, refusedHeaders, audit);
  for (const { method, path, handler } of ROUTES) app.on(method, path, handler);
  app.onError((error, c) => answerError(error, c));
  app.notFound((c) => answerNoRoute(c, allowedMethods(app, c.req.path)));
  return app;
}

/** The methods that some route offers for this path; none: the path does not exist. */
function allowedMethods(app: App, path: string): string[] {
  const offered = METHODS.filter((method) =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method !== METHOD_NAME_ALL),
  );
  if (offered.length === 0) return [];
  return offered.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
}
