/** The HTTP application: what surrounds every request, and the routes. */
import { Hono } from 'hono';
import { METHOD_NAME_ALL } from 'hono/router';
import type { App, AppEnv } from './context';
import { answerError, answerNoRoute } from './errors';
import { authentication } from './middleware/auth';
import { cors, preflight } from './middleware/cors';
import { requestId } from './middleware/request-id';
import { refuseUnoffered } from './middleware/unoffered';
import { protocolVersion } from './middleware/version';
import { adminRoutes } from './routes/admin';
import { adminBulkRoutes } from './routes/admin-bulk';
import { adminQueueRoutes } from './routes/admin-queues';
import { adminWorkerRoutes } from './routes/admin-workers';
import { bulkRoutes } from './routes/bulk';
import { checkpointRoutes, sdkCheckpointRoutes } from './routes/checkpoints';
import { cronRoutes } from './routes/cron';
import { cronGroupRoutes } from './routes/cron-groups';
import { deadLetterRoutes } from './routes/dead-letter';
import { eventRoutes } from './routes/events';
import { historyRoutes } from './routes/history';
import { jobRoutes } from './routes/jobs';
import { progressRoutes } from './routes/progress';
import { queueDefaultRoutes } from './routes/queue-defaults';
import { queueOperationRoutes } from './routes/queue-operations';
import { queueRoutes } from './routes/queues';
import { rateLimitRoutes } from './routes/rate-limits';
import { resultRoutes } from './routes/results';
import { systemRoutes } from './routes/system';
import { workerRoutes } from './routes/workers';
import { workflowRoutes } from './routes/workflows';

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
