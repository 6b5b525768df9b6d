/** Every route of the server, in the order in which they are tried. */
import { defined } from '../job/envelope/fields';
import { alertRoutes } from './alerts/routes';
import { adminAuditRoutes } from './audit/routes';
import { adminOperationRoutes, bulkRoutes } from './bulk/routes';
import { checkpointRoutes, sdkCheckpointRoutes } from './checkpoints/routes';
import { cronRoutes } from './cron/routes';
import { cronGroupRoutes } from './cron-groups/routes';
import { adminDeadLetterRoutes, deadLetterRoutes } from './dead-letter/routes';
import { adminDeploymentRoutes } from './deployment/routes';
import { eventRoutes } from './events/routes';
import { adminExportRoutes } from './export/routes';
import { adminFailureRoutes } from './failures/routes';
import { historyRoutes } from './history/routes';
import { adminJobRoutes } from './jobs/admin';
import { jobRoutes } from './jobs/routes';
import { adminKeyRoutes } from './keys/routes';
import { logRoutes } from './logs/routes';
import { adminMaintenanceRoutes } from './maintenance/routes';
import { mcpRoutes } from './mcp/routes';
import { metricsRoutes } from './metrics/routes';
import { statsRoutes } from './metrics/stats';
import { openapiRoutes } from './openapi/routes';
import { adminPoolRoutes } from './pools/routes';
import { progressRoutes } from './progress/routes';
import { adminQueueRoutes } from './queues/admin';
import { queueDefaultRoutes } from './queues/defaults';
import { queueGroupRoutes } from './queues/groups';
import { queueManagementRoutes } from './queues/manage';
import { queueRoutes } from './queues/routes';
import { rateLimitRoutes } from './rate-limits/routes';
import { resultRoutes } from './results/routes';
import { ADMIN_PREFIX, defaultScope, type Route, type Rules } from './route';
import { adminSchemaRoutes, schemaRoutes } from './schemas/routes';
import { adminSessionRoutes } from './session/routes';
import { signalRoutes } from './signal/routes';
import { stepRoutes } from './steps/routes';
import { streamRoutes } from './streams/routes';
import { adminSystemRoutes, surroundingRoutes, systemRoutes } from './system/routes';
import { targetRoutes } from './targets/routes';
import { tokenRoutes } from './tokens/routes';
import { uiRoutes } from './ui/routes';
import { uniqueJobRoutes } from './unique-jobs/routes';
import { webhookRoutes } from './webhooks/routes';
import { adminWorkerRoutes, workerRoutes } from './workers/routes';
import { workflowRoutes } from './workflows/routes';

const PREFIX = '/ojs/v1';

/** A route at its full path, with the scope that holds. */
export type MountedRoute = Route & Rules;

/** The first route that matches answers: `jobs/bulk` comes before `jobs/:id`, `_default` before `:name`. */
export const ROUTES: readonly MountedRoute[] = [
  ...below('', systemRoutes, metricsRoutes, uiRoutes, mcpRoutes),
  ...below(PREFIX, bulkRoutes, jobRoutes, historyRoutes, workerRoutes, progressRoutes, resultRoutes, checkpointRoutes),
  ...below(PREFIX, stepRoutes, streamRoutes, logRoutes, tokenRoutes, signalRoutes),
  ...below(PREFIX + PREFIX, sdkCheckpointRoutes),
  ...below(
    PREFIX,
    queueDefaultRoutes,
    queueRoutes,
    queueGroupRoutes,
    queueManagementRoutes,
    rateLimitRoutes,
    deadLetterRoutes,
  ),
  ...below(PREFIX, workflowRoutes, eventRoutes, cronRoutes, cronGroupRoutes, targetRoutes),
  ...below(
    ADMIN_PREFIX,
    adminJobRoutes,
    adminDeadLetterRoutes,
    queueDefaultRoutes,
    adminQueueRoutes,
    adminExportRoutes,
    adminSessionRoutes,
    adminKeyRoutes,
    adminAuditRoutes,
    adminSystemRoutes,
    adminDeploymentRoutes,
    adminWorkerRoutes,
    targetRoutes,
    adminFailureRoutes,
    alertRoutes,
    adminMaintenanceRoutes,
    adminSchemaRoutes,
    adminPoolRoutes,
    statsRoutes,
  ),
  ...below(PREFIX, webhookRoutes, uniqueJobRoutes, surroundingRoutes, schemaRoutes, openapiRoutes),
  ...below(ADMIN_PREFIX, adminOperationRoutes),
];

function below(prefix: string, ...groups: (readonly Route[])[]): MountedRoute[] {
  return groups.flat().map((route) => {
    const path = prefix + route.path;
    return { ...route, path, scope: route.scope ?? defaultScope(route.method, path) };
  });
}

const publicPaths = new Set(ROUTES.flatMap(({ scope, path }) => (scope === 'public' ? [path] : [])));
/** Beginnings of public paths with parameters. */
const publicFolders = [...publicPaths].flatMap((path) => (/[*:]/.test(path) ? [path.replace(/[*:].*/, '')] : []));

const isPublic = (path: string): boolean =>
  publicPaths.has(path) || publicFolders.some((folder) => `${path}/`.startsWith(folder));

/** The rules of a request without a route: a path that is public for one method answers 405 without a key. */
export function rulesElsewhere(method: string, path: string): Rules {
  const scope = isPublic(path) ? 'public' : defaultScope(method, path);
  // A browser asks before it sends a request, and without what that will bring.
  const asked = method === 'OPTIONS' ? FOR_PAGES.find(({ fits }) => fits.test(path)) : undefined;
  return { scope, bound: 'any', ...asked?.rules };
}

/** Routes that pages of other origins may use, or may not. */
const FOR_PAGES = ROUTES.flatMap(({ token, anyOrigin, ownPages, path }) => {
  if (!token && !anyOrigin && !ownPages) return [];
  return [{ fits: new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`), rules: defined({ token, anyOrigin, ownPages }) }];
});
