/** Cron entries, below `/ojs/v1/cron` and, in the shapes of the admin UI, below `/ojs/v1/crons`. */

import {
  changeCron,
  deleteCron,
  findCron,
  listCrons,
  noCron,
  readCron,
  readCrons,
  saveCron,
  withCron,
} from '../../across/crons';
import { validateCrons } from '../../across/schemas';
import { type CronTriggered, crons } from '../../contract/cron';
import { defined } from '../../job/envelope/fields';
import { UnknownMembers } from '../../job/unknown-members';
import { saysVersion, withFlatCopy } from '../../ojs/answers';
import { also } from '../../ojs/names';
import type { CronSkip, CronView } from '../../rpc/cron';
import { isCronName, parseCron } from '../../schedules/definition';
import { type AppContext, json, noContent } from '../context';
import { envelopeOf, warningsOf } from '../jobs/render';
import { readBody } from '../request/body';
import { boundsOf } from '../request/bounds';
import { mayCreate } from '../request/new-queues';
import { type PagingStyle, pageByName, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { booleanParam, integerParam, textParam } from '../request/query';
import { refuseRedacted } from '../request/redacted';
import { serve } from '../route';
import { renderCron, renderCronAnswer, renderExecution, renderSkip } from './render';

const MAX_HISTORY = 50;

const item = about((view) => renderCron(view, true));

export const cronRoutes = serve(crons, {
  save: create,
  list: async (c) => {
    const { listed, page } = await listPage(c);
    return json(c, also('CronList', { crons: listed, count: page.total, pagination: page }));
  },
  items: async (c) => {
    const { listed, page } = await listPage(c, 'page');
    return json(c, { items: listed, pagination: page });
  },
  remove: async (c) => {
    const entry = renderCron(seenBy(c, await deleteCron(c.env, nameIn(c))));
    const named = saysVersion(c) ? entry : { name: entry.name, cron: entry };
    return json(c, { deleted: true as const, ...named, cron_job: entry });
  },
  removeItem: async (c) => {
    await deleteCron(c.env, nameIn(c));
    return noContent(c);
  },
  ...about((view, c) => renderCronAnswer(view, saysVersion(c))),
  showItem: item.show,
  changeItem: item.change,
  replaceItem: item.replace,
  pauseItem: item.pause,
  resumeItem: item.resume,
  triggerItem: trigger,
  historyOfItem: history,
});

/** The routes of one entry in both places. */
function about<Shown extends object>(render: (view: CronView, c: AppContext) => Shown) {
  const answer = (read: (c: AppContext) => Promise<CronView>) => async (c: AppContext) =>
    json(c, render(seenBy(c, await read(c)), c));
  const changed = async (c: AppContext) => {
    const { view, warned } = await change(c);
    return json(c, { ...render(view, c), ...warned.members }, 200, warned.headers);
  };
  return {
    show: answer((c) => readCron(c.env, nameIn(c))),
    change: changed,
    replace: changed,
    pause: answer((c) => enable(c, false)),
    resume: answer((c) => enable(c, true)),
    trigger,
    history,
  };
}

/** A skipped fire without the job in the way, which may be another's, to a key with bounds. */
const seenSkip =
  (c: AppContext) =>
  ({ job_id, message, ...skip }: CronSkip): CronSkip =>
    boundsOf(c) ? skip : { ...skip, ...defined({ job_id, message }) };

const seenBy = (c: AppContext, view: CronView): CronView => ({
  ...view,
  run: { ...view.run, skipped: view.run.skipped.map(seenSkip(c)) },
});

/** The name in the path. @throws {ApiError} 404 when no entry can have it */
function nameIn(c: AppContext): string {
  const name = pathParam(c, 'name');
  if (isCronName(name)) return name;
  throw noCron(name);
}

async function create(c: AppContext) {
  const body = await readBody(c);
  refuseRedacted(c, body, 'job_template');
  const before = typeof body.name === 'string' && isCronName(body.name) ? await findCron(c.env, body.name) : undefined;
  // An entry that an operator has paused stays paused when the application declares it again.
  const { enabled, group } = before?.definition ?? {};
  const unknown = new UnknownMembers();
  const definition = await parseCron(body, { now: Date.now(), group, unknown, defaults: { enabled } });
  await mayCreate(c, [definition]);
  const warnings = await validateCrons(c.env, [definition], Date.now());
  const saved = await saveCron(c.env, definition, before);
  const entry = renderCron(saved, true);
  const named = saysVersion(c) ? entry : { cron: entry };
  const warned = warningsOf(warnings, unknown);
  const headers = { ...(saved.created && { Location: `/ojs/v1/cron/${definition.name}` }), ...warned.headers };
  return json(c, { ...named, cron_job: entry, ...warned.members }, saved.created ? 201 : 200, headers);
}

async function listPage(c: AppContext, style?: PagingStyle) {
  const paging = readPaging(c, style);
  const enabled = booleanParam(c, 'enabled');
  const group = textParam(c, 'group');
  const all = (await listCrons(c.env, c.get('queues'))).filter(
    (entry) => (enabled === undefined || entry.enabled === enabled) && (group === undefined || entry.group === group),
  );
  const page = pageByName(all, ({ name }) => name, paging);
  const listed = (await readCrons(c.env, page.items, true)).map((view) => renderCron(seenBy(c, view)));
  return { listed, page: page.pagination };
}

async function change(c: AppContext) {
  const name = nameIn(c);
  const body = await readBody(c);
  refuseRedacted(c, body, 'job_template');
  // Only a switch: the queue turns it without looking at the definition.
  if (Object.keys(body).length === 1 && typeof body.enabled === 'boolean') {
    return { view: await setEnabled(c, name, body.enabled), warned: warningsOf([]) };
  }
  const unknown = new UnknownMembers();
  let warnings: string[] = [];
  const view = await changeCron(c.env, name, async (base) => {
    const definition = await parseCron(body, { now: Date.now(), base, name, unknown });
    await mayCreate(c, [definition]);
    warnings = await validateCrons(c.env, [definition], Date.now());
    return definition;
  });
  return { view, warned: warningsOf(warnings, unknown) };
}

const enable = async (c: AppContext, enabled: boolean): Promise<CronView> => setEnabled(c, nameIn(c), enabled);

const setEnabled = (c: AppContext, name: string, enabled: boolean): Promise<CronView> =>
  withCron(c.env, name, (queue) => queue.enableCron(name, enabled));

async function trigger(c: AppContext) {
  const name = nameIn(c);
  const view = await withCron(c.env, name, (queue) => queue.triggerCron(name));
  const job = envelopeOf(c, view);
  const answer = withFlatCopy(job, { job_id: job.id }) as unknown as CronTriggered;
  const { deduplicated, accumulated } = view;
  if (deduplicated || accumulated) return json(c, { ...answer, ...defined({ deduplicated, accumulated }) });
  return json(c, answer, 201, { Location: `/ojs/v1/jobs/${job.id}` });
}

async function history(c: AppContext) {
  const name = nameIn(c);
  const limit = integerParam(c, 'limit', 1, MAX_HISTORY) ?? MAX_HISTORY;
  const { executions, skipped } = await withCron(c.env, name, (queue) => queue.cronHistory(name, limit));
  return json(c, {
    name,
    executions: executions.map(renderExecution),
    skipped: skipped.map(seenSkip(c)).map(renderSkip),
    count: executions.length,
  });
}
