/** What a key with bounds gets of each kind of route (`RouteRules.bound`). */
import { outsideKey } from '../../across/bounds';
import { findCron, noCron } from '../../across/crons';
import { isWorkflowInside } from '../../across/workflows';
import type { Bound } from '../../contract/route';
import { type Bounds, fits } from '../../job/bounds';
import { notFound } from '../../job/errors';
import { isCronName } from '../../schedules/definition';
import type { AppContext } from '../context';
import { boundsOf, mustSee, queuesWithin } from '../request/bounds';
import { pathParam } from '../request/path';
import type { Check } from '../route';

const KINDS: Record<Bound, (c: AppContext, bounds: Bounds) => Promise<void> | void> = {
  any: () => undefined,
  // By patterns alone, where the entries are known: `insideOnly`.
  enqueue: () => undefined,
  job: (c) => mustSee(c, pathParam(c, 'id')),
  list: async (c, bounds) => c.set('queues', await queuesWithin(c.env, bounds)),
  queue: (c, bounds) => {
    const queue = pathParam(c, 'name');
    if (!fits(bounds, { queue })) throw notFound('queue', queue);
    wholeOnly(bounds);
  },
  // What the worker names is looked at where it is known.
  work: (_, bounds) => {
    if (bounds.groups) throw outsideKey(bounds, 'A fetch takes jobs of all groups, so a key bound by groups has none.');
  },
  cron: async (c, bounds) => {
    wholeOnly(bounds);
    const name = pathParam(c, 'name');
    const view = isCronName(name) ? await findCron(c.env, name) : undefined;
    if (!view || !fits(bounds, { queue: view.definition.queue })) throw noCron(name);
  },
  workflow: async (c, bounds) => {
    if (bounds.groups) throw outsideKey(bounds, 'Workflows do not know the groups of their jobs, which bind this key.');
    const id = c.req.param('id');
    if (id !== undefined && !(await isWorkflowInside(c.env, bounds, id))) throw notFound('workflow', id);
  },
  queues: (c, bounds) => {
    wholeOnly(bounds);
    return KINDS.list(c, bounds);
  },
};

/** For numbers of whole queues. @throws {ApiError} 403 */
function wholeOnly(bounds: Bounds): void {
  if (!bounds.types && !bounds.groups) return;
  throw outsideKey(bounds, 'A key that is bound by types or groups sees no queue as a whole.');
}

/** @throws {ApiError} 403 `outside_key`; 404 for what lies outside, as for what does not exist */
export const bounds: Check = async (c, { bound, scope }) => {
  const within = boundsOf(c);
  if (!within || scope === 'public') return undefined;
  if (!bound) throw outsideKey(within, 'This request is not offered to keys with bounds.');
  await KINDS[bound](c, within);
  return undefined;
};
