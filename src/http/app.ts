/** The HTTP application: what surrounds every request, and the routes. */
import { Hono } from 'hono';
import type { App, AppContext, AppEnv } from './context';
import { answerError, answerNoRoute } from './errors';
import { audit } from './middleware/audit';
import { authentication, everything, redaction } from './middleware/auth';
import { configuration, type Ready } from './middleware/configuration';
import { cors, foreignPages, preflight } from './middleware/cors';
import { requestId } from './middleware/request-id';
import { protocolVersion, refusedHeaders } from './middleware/version';
import { accepted } from './request/accepted';
import { releaseRoom } from './request/held';
import { type Check, METHODS, type RouteHandler, type Rules } from './route';
import { ROUTES, rulesElsewhere } from './routes';
import { frontDoor } from './ui/routes';

/** Which callers need a key. */
export interface AppOptions {
  /** None: the requests come from code of this account, over a binding that the network cannot reach. */
  trusted?: boolean;
  /** Must be done before a request is served. */
  ready?: Ready;
}

/** Builds the application. Its order is a rule: an answer of any kind has an id, a version and CORS headers. */
export function createApp({ trusted = false, ready }: AppOptions = {}): App {
  const app: App = new Hono<AppEnv>();
  const access = trusted ? [everything] : [foreignPages, preflight, authentication];
  const outer = [requestId, cors, protocolVersion, frontDoor];
  const checks = [...outer, ...access, configuration(ready), redaction, refusedHeaders];
  for (const route of ROUTES) {
    const answer = surrounded([...checks, accepted(route)], route.handler);
    app.on(route.method, route.path, (c) => answer(c, route));
  }
  const answerElsewhere = surrounded(checks, (c) => answerNoRoute(c, allowedMethods(app, c.req.path)));
  app.notFound((c) => answerElsewhere(c, rulesElsewhere(c.req.method, c.req.path)));
  app.onError(answerError);
  return app;
}

/** A handler with all that surrounds it, in one function: a chain of middleware costs a third of a small request. */
function surrounded(checks: readonly Check[], handler: RouteHandler) {
  return async (c: AppContext, rules: Rules): Promise<Response> => {
    c.set('headers', {});
    try {
      for (const check of checks) {
        const said = check(c, rules);
        const answer = said instanceof Promise ? await said : said;
        if (answer) return answer;
      }
      return await audit(c, rules, await answered(c, handler));
    } catch (error) {
      return answerError(error, c);
    } finally {
      releaseRoom(c);
    }
  };
}

async function answered(c: AppContext, handler: RouteHandler): Promise<Response> {
  try {
    return await handler(c);
  } catch (error) {
    return answerError(error, c);
  }
}

/** The methods of the routes for this path; none: the path does not exist. */
function allowedMethods(app: App, path: string): string[] {
  const offered = METHODS.filter((method) => app.router.match(method, path)[0].length > 0);
  return offered.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
}
