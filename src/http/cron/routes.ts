/** Routes about cron entries, below `/ojs/v1/cron` and, in the shapes of the admin UI, below `/ojs/v1/crons`. */
import { Hono } from 'hono';
import { deleteCron, findCron, listCrons, noCron, readCron, readCrons, saveCron, withCron } from '../../across/crons';
import { readConfig } from '../../config';
import { isCronName, parseCron } from '../../job/cron/definition';
import { renderJob } from '../../job/envelope/render';
import { ApiError, invalidRequest } from '../../job/errors';
import type { CronView } from '../../rpc/cron';
import type { AppContext, AppEnv } from '../context';
import { type JsonObject, readBody, readOptionalBody } from '../request/body';
import { type PagingStyle, pageByName, readPaging } from '../request/pagination';
import { integerParam, textParam } from '../request/query';
import { json } from '../respond';
import { renderCron, renderCronAnswer, renderExecution, renderSkip } from './render';

/** How often a change is tried that others get in the way of. */
const TRIES = 3;
const MAX_HISTORY = 50;

/** Routes below `/ojs/v1`. */
export function cronRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.post('/cron', createCron);
  routes.get('/cron', async (c) => {
    const { crons, page } = await listPage(c);
    return json(c, { crons, cron_jobs: crons, count: page.total, pagination: page });
  });
  routes.get('/crons', async (c) => {
    const { crons, page } = await listPage(c, 'page');
    return json(c, { items: crons, pagination: page });
  });
  routes.delete('/cron/:name', async (c) => {
    const entry = renderCron(await deleteCron(c.env, nameIn(c)));
    return json(c, { deleted: true, name: entry.name, cron: entry, cron_job: entry });
  });
  routes.delete('/crons/:name', async (c) => {
    await deleteCron(c.env, nameIn(c));
    return c.body(null, 204);
  });
  for (const [path, render] of [
    ['/cron/:name', renderCronAnswer],
    ['/crons/:name', (view: CronView) => renderCron(view, true)],
  ] as const) {
    routes.get(path, async (c) => json(c, render(await readCron(c.env, nameIn(c)))));
    routes.patch(path, async (c) => json(c, render(await changeCron(c))));
    routes.put(path, async (c) => json(c, render(await changeCron(c))));
    routes.post(`${path}/pause`, async (c) => json(c, render(await enable(c, false))));
    routes.post(`${path}/resume`, async (c) => json(c, render(await enable(c, true))));
    routes.post(`${path}/trigger`, trigger);
    routes.get(`${path}/history`, history);
  }
  return routes;
}

/** The name in the path. @throws {ApiError} 404 when no entry can have it */
function nameIn(c: AppContext): string {
  const name = c.req.param('name') ?? '';
  if (isCronName(name)) return name;
  throw noCron(name);
}

async function createCron(c: AppContext): Promise<Response> {
  const body = await readBody(c);
  const before = typeof body.name === 'string' && isCronName(body.name) ? await findCron(c.env, body.name) : undefined;
  // What an operator has paused stays paused when the application declares it again.
  const { enabled, group } = before?.definition ?? {};
  const definition = await parseCron(body, { now: Date.now(), group, defaults: { enabled } });
  const saved = await saveCron(c.env, definition, before);
  const entry = renderCron(saved, true);
  const headers = { Location: `/ojs/v1/cron/${definition.name}` };
  return json(c, { cron: entry, cron_job: entry }, saved.created ? 201 : 200, saved.created ? headers : {});
}

async function listPage(c: AppContext, style?: PagingStyle) {
  const paging = readPaging(c, style);
  const enabled = textParam(c, 'enabled');
  if (enabled !== undefined && enabled !== 'true' && enabled !== 'false') {
    throw invalidRequest('enabled', 'enabled must be true or false.');
  }
  const group = textParam(c, 'group');
  const all = (await listCrons(c.env)).filter(
    (entry) =>
      (enabled === undefined || entry.enabled === (enabled === 'true')) &&
      (group === undefined || entry.group === group),
  );
  const page = pageByName(all, ({ name }) => name, paging);
  const crons = (await readCrons(c.env, page.items)).map((view) => renderCron(view));
  return { crons, page: page.pagination };
}

/** Changes what the body names. */
async function changeCron(c: AppContext): Promise<CronView> {
  const name = nameIn(c);
  const body = await readBody(c);
  const toggle = onlyEnabled(body);
  if (toggle !== undefined) return setEnabled(c, name, toggle);
  for (let tries = 1; ; tries++) {
    const before = await readCron(c.env, name);
    const definition = await parseCron(body, { now: Date.now(), base: before.definition, name });
    try {
      return await saveCron(c.env, definition, before, true);
    } catch (error) {
      const overtaken = error instanceof ApiError && error.data.code === 'conflict';
      if (!overtaken || tries === TRIES) throw error;
    }
  }
}

/** The value of `enabled` when the body says nothing else. */
function onlyEnabled(body: JsonObject): boolean | undefined {
  return Object.keys(body).length === 1 && typeof body.enabled === 'boolean' ? body.enabled : undefined;
}

async function enable(c: AppContext, enabled: boolean): Promise<CronView> {
  await readOptionalBody(c);
  return setEnabled(c, nameIn(c), enabled);
}

function setEnabled(c: AppContext, name: string, enabled: boolean): Promise<CronView> {
  return withCron(c.env, name, (queue) => queue.enableCron(name, enabled));
}

async function trigger(c: AppContext): Promise<Response> {
  const name = nameIn(c);
  await readOptionalBody(c);
  const view = await withCron(c.env, name, (queue) => queue.triggerCron(name));
  const job = renderJob(view, readConfig(c.env).retryVariables);
  if (view.deduplicated) return json(c, { job, job_id: job.id, deduplicated: true });
  return json(c, { job, job_id: job.id }, 201, { Location: `/ojs/v1/jobs/${job.id}` });
}

async function history(c: AppContext): Promise<Response> {
  const name = nameIn(c);
  const limit = integerParam(c, 'limit', 1, MAX_HISTORY) ?? MAX_HISTORY;
  const { executions, skipped } = await withCron(c.env, name, (queue) => queue.cronHistory(name, limit));
  return json(c, {
    name,
    executions: executions.map(renderExecution),
    skipped: skipped.map(renderSkip),
    count: executions.length,
  });
}
