/** The settings of every queue without its own. `_default` names no queue; the routes below `/admin` are the same. */

import { type QueueDefaults, queueDefaults } from '../../contract/queues';
import { unwrap } from '../../job/errors';
import { directoryObject } from '../../rpc/stubs';
import { type QueueConfig, withBuiltIns } from '../../settings';
import { type AppContext, json, mayPurge } from '../context';
import { readBody } from '../request/body';
import { serve } from '../route';
import { parseQueueConfig, renderQueueConfig } from './config';
import { pendingQueues } from './render';

const NAME = '_default';

/** Routes below `/ojs/v1` and `/ojs/v1/admin`. They come before those of single queues. */
export const queueDefaultRoutes = serve(queueDefaults, { show, change });

async function show(c: AppContext) {
  return json(c, render((await directoryObject(c.env).queueDefaults())?.config ?? {}));
}

async function change(c: AppContext) {
  const given = parseQueueConfig(await readBody(c));
  const { config, untold } = unwrap(await directoryObject(c.env).changeQueueDefaults(given, mayPurge(c)));
  return json(c, { ...render(config), ...pendingQueues(untold) });
}

const render = (config: QueueConfig): QueueDefaults => ({
  name: NAME,
  config: renderQueueConfig(config),
  effective: renderQueueConfig(withBuiltIns(config)),
});
