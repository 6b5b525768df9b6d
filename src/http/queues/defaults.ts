/**
 * Routes about the settings that hold in every queue which says nothing else. `_default` is no queue name, so they are no
 * settings of a queue; below `/admin` they are the same.
 */
import { Hono } from 'hono';
import { withBuiltIns } from '../../job/settings';
import { directoryObject } from '../../rpc/stubs';
import type { AppContext, AppEnv } from '../context';
import { readBody } from '../request/body';
import { json } from '../respond';
import { parseQueueConfig, renderQueueConfig } from './config';

const NAME = '_default';
const PATH = `/queues/${NAME}/config`;

/** Routes below `/ojs/v1` and `/ojs/v1/admin`. They stand before those of single queues. */
export function queueDefaultRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.get(PATH, show);
  routes.put(PATH, change);
  return routes;
}

async function show(c: AppContext): Promise<Response> {
  const config = (await directoryObject(c.env).queueDefaults())?.config ?? {};
  return json(c, {
    name: NAME,
    config: renderQueueConfig(config),
    effective: renderQueueConfig(withBuiltIns(config)),
  });
}

async function change(c: AppContext): Promise<Response> {
  const given = parseQueueConfig(await readBody(c));
  const { config, untold } = await directoryObject(c.env).changeQueueDefaults(given);
  return json(c, {
    name: NAME,
    config: renderQueueConfig(config),
    effective: renderQueueConfig(withBuiltIns(config)),
    ...(untold > 0 && { pending_queues: untold }),
  });
}
