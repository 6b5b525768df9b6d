/** The HTTP application: what surrounds every request, and the routes. */
import { Hono } from 'hono';
import { METHOD_NAME_ALL } from 'hono/router';
import { adminBulkRoutes } from './admin/jobs';
import { adminQueueRoutes } from './admin/queues';
import { adminRoutes } from './admin/system';
import { adminWorkerRoutes } from './admin/workers';
import { bulkRoutes } from './bulk/routes';
import { checkpointRoutes, sdkCheckpointRoutes } from './checkpoints/routes';
import type { App, AppEnv } from './context';
import { cronRoutes } from './cron/routes';
import { cronGroupRoutes } from './cron-groups/routes';
import { deadLetterRoutes } from './dead-letter/routes';
import { answerError, answerNoRoute } from './errors';
import { eventRoutes } from './events/routes';
import { historyRoutes } from './history/routes';
import { jobRoutes } from './jobs/routes';
import { authentication } from './middleware/auth';
import { cors, preflight } from './middleware/cors';
import { refuseUnoffered } from './middleware/refused-headers';
import { requestId } from './middleware/request-id';
import { protocolVersion } from './middleware/version';
import { progressRoutes } from './progress/routes';
import { queueDefaultRoutes } from './queues/defaults';
import { queueOperationRoutes } from './queues/manage';
import { queueRoutes } from './queues/routes';
import { rateLimitRoutes } from './rate-limits/routes';
import { resultRoutes } from './results/routes';
import { systemRoutes } from './system/routes';
import { workerRoutes } from './workers/routes';
import { workflowRoutes } from './workflows/routes';

const PREFIX = '/ojs/v1';
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** Builds the application. Its order is a rule: an answer of any kind has an id, a version and CORS headers. */
export function createApp(): App {
  const app: App = new Hono<AppEnv>();
  app.use(requestId(), cors(), protocolVersion(), preflight(), authentication(), refuseUnoffered());
  app.route('/', systemRoutes());
  app.route(PREFIX, bulkRoutes());
  app.route(PREFIX, jobRoutes());
  app.route(PREFIX, historyRoutes());
  app.route(PREFIX, workerRoutes());
  app.route(PREFIX, progressRoutes());
  app.route(PREFIX, resultRoutes());
  app.route(PREFIX, checkpointRoutes());
  app.route(PREFIX + PREFIX, sdkCheckpointRoutes());
  app.route(PREFIX, queueDefaultRoutes());
  app.route(PREFIX, queueRoutes());
  app.route(PREFIX, queueOperationRoutes());
  app.route(PREFIX, rateLimitRoutes());
  app.route(PREFIX, deadLetterRoutes());
  app.route(PREFIX, workflowRoutes());
  app.route(PREFIX, eventRoutes());
  app.route(PREFIX, cronRoutes());
  app.route(PREFIX, cronGroupRoutes());
  app.route(`${PREFIX}/admin`, adminBulkRoutes());
  app.route(`${PREFIX}/admin`, queueDefaultRoutes());
  app.route(`${PREFIX}/admin`, adminQueueRoutes());
  app.route(`${PREFIX}/admin`, adminRoutes());
  app.route(`${PREFIX}/admin`, adminWorkerRoutes());
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
