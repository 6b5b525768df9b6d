/** The HTTP application: what surrounds every request, and the routes. */
import { Hono } from 'hono';
import { checkPlace } from '../across/place';
import { type Env, readConfig } from '../config';
import { unsupported } from '../job/errors';
import { quote } from '../job/text';
import type { App, AppContext, AppEnv } from './context';
import { answerError, answerNoRoute } from './errors';
import { audit } from './middleware/audit';
import { authentication, everything, redaction } from './middleware/auth';
import { bounds } from './middleware/bounds';
import { cors, foreignPages, preflight } from './middleware/cors';
import { accepted } from './request/accepted';
import { releaseRoom } from './request/held';
import { type Check, METHODS, type RouteHandler, type Rules } from './route';
import { ROUTES, rulesElsewhere } from './routes';
import { frontDoor } from './ui/routes';

const OJS_VERSION = '1.0';

const protocolVersion: Check = (c) => {
  c.get('headers')['OJS-Version'] = OJS_VERSION;
  const asked = c.req.header('OJS-Version');
  if (asked !== undefined && !/^1(\.\d+)*(-[0-9a-z.-]+)?$/i.test(asked.trim())) {
    throw unsupported(`OJS version ${quote(asked)} is not supported; this server speaks ${OJS_VERSION}.`, {
      header: 'OJS-Version',
      supported: [OJS_VERSION],
    });
  }
};

/** Refuses headers that ask for a guarantee this version does not give: ignoring them would break the promise. */
const refusedHeaders: Check = (c, { takesIdempotencyKey }) => {
  if (c.req.header('X-OJS-Tenant') !== undefined) refuse('X-OJS-Tenant');
  if (takesIdempotencyKey || c.req.method !== 'POST') return;
  if (c.req.header('Idempotency-Key') !== undefined) refuse('Idempotency-Key');
};

function refuse(header: string): never {
  throw unsupported(`The header ${header} is not supported here.`, { field: header });
}

const ACCEPTED = /^[\x21-\x7e]{1,128}$/;

const requestId: Check = (c) => {
  const own = c.req.header('X-Request-ID');
  const id = own !== undefined && ACCEPTED.test(own) ? own : `req_${uuidV7(Date.now())}`;
  c.set('requestId', id);
  c.get('headers')['X-Request-ID'] = id;
};

/** The random end of this isolate's ids, made on first use: a loading module may not ask for randomness. */
let end: string | undefined;
let counter = 0;

/**
 * A UUIDv7 of time, a counter of 12 bits and an end that the isolate keeps (RFC 9562, 6.2, method 1). An id must be
 * unique, but not secret; random bits for each cost as much as reading a small body.
 */
function uuidV7(now: number): string {
  end ??= crypto.randomUUID().slice(19);
  counter = (counter + 1) % 0x1000;
  const time = now.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}-${end}`;
}

/** Waits for the work before a request is served. @throws {ApiError} 500 `invalid_configuration` */
type Ready = (env: Env) => Promise<void>;

function configuration(ready: Ready | undefined): Check {
  return async (c, { scope, reports, asItIs }) => {
    if (scope === 'public') return undefined;
    // Reports, too: there would be no such job in another place.
    await checkPlace(c.env);
    if (reports) return undefined;
    readConfig(c.env);
    if (asItIs) return undefined;
    await ready?.(c.env);
    return undefined;
  };
}

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
  const outer: Check[] = [(c) => void c.set('app', app), requestId, cors, protocolVersion, frontDoor];
  const checks = [...outer, ...access, configuration(ready), bounds, redaction, refusedHeaders];
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
