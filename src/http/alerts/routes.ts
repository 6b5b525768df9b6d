import * as contract from '../../contract/alerts';
import { formatDuration } from '../../job/duration';
import { defined } from '../../job/envelope/fields';
import { notFound, unwrap } from '../../job/errors';
import { formatInstant } from '../../job/time';
import { parseAlert } from '../../notifications/alert/parse';
import { also } from '../../ojs/names';
import type { AlertInQueue, AlertView, ChangedAlert } from '../../rpc/alerts';
import { directoryObject } from '../../rpc/stubs';
import { type AppContext, json, noContent } from '../context';
import { pendingQueues } from '../queues/render';
import { readBody } from '../request/body';
import { pageByName, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { serve } from '../route';

export const alertRoutes = serve(contract.alerts, { list, create, show, change, remove });

async function list(c: AppContext) {
  const page = pageByName(await directoryObject(c.env).alerts(), ({ rule }) => rule.id, readPaging(c));
  return json(c, also('AlertList', { ...page, items: page.items.map(render) }));
}

async function create(c: AppContext) {
  const members = parseAlert(await readBody(c));
  const made = unwrap(await directoryObject(c.env).createAlert(members));
  return json(c, answer(made), 201, { Location: `/ojs/v1/admin/alerts/${made.rule.id}` });
}

async function show(c: AppContext) {
  return json(c, render(await find(c)));
}

async function change(c: AppContext) {
  const body = await readBody(c);
  const { rule } = await find(c);
  return json(c, answer(unwrap(await directoryObject(c.env).changeAlert(rule.id, parseAlert(body, rule)))));
}

async function remove(c: AppContext) {
  const id = pathParam(c, 'id');
  if (!(await directoryObject(c.env).deleteAlert(id))) throw notFound('alert', id);
  return noContent(c);
}

async function find(c: AppContext): Promise<AlertView> {
  const id = pathParam(c, 'id');
  const found = await directoryObject(c.env).alert(id);
  if (!found) throw notFound('alert', id);
  return found;
}

const answer = ({ untold, ...view }: ChangedAlert): contract.AlertChanged => ({
  ...render(view),
  ...pendingQueues(untold),
});

/** It fires where any queue does. Ages are seconds, rates parts of one. */
function render({ rule, queues }: AlertView): contract.Alert {
  const [first] = queues;
  const { id, name, queue = null, metric, above, subscription_id = null, active, declared } = rule;
  return {
    ...{ id, name, queue, metric, above },
    for: formatDuration(rule.for_ms),
    ...{ subscription_id, active, ...defined({ declared }) },
    state: first?.state ?? 'ok',
    since: first ? formatInstant(first.since) : null,
    last_value: first?.value ?? null,
    queues: queues.map(renderInQueue),
    created_at: formatInstant(rule.created_at),
    updated_at: formatInstant(rule.updated_at),
  };
}

const renderInQueue = ({ queue, state, since, value }: AlertInQueue): contract.AlertInQueue => ({
  queue,
  state,
  since: formatInstant(since),
  last_value: value,
});
