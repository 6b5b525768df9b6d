/** Groups of cron entries: an application declares all of its schedules at once, as often as it likes. */

import { deleteCrons, type GroupEntry, type Located, listCrons, readCrons, replaceCronGroup } from '../../across/crons';
import { validateCrons } from '../../across/schemas';
import { cronGroups } from '../../contract/cron';
import { optional, readList, readObject } from '../../job/envelope/fields';
import { atIndex, conflict, invalidRequest, notFound } from '../../job/errors';
import { UnknownMembers } from '../../job/unknown-members';
import { also } from '../../ojs/names';
import { CRON_NAME_RULE, type CronDefinition, isCronName, parseCron, readZone } from '../../schedules/definition';
import { type AppContext, json } from '../context';
import { renderCron } from '../cron/render';
import { warningsOf } from '../jobs/render';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../request/body';
import { mayCreate } from '../request/new-queues';
import { pageByName, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { serve } from '../route';

const MAX_ENTRIES = 1000;

export const cronGroupRoutes = serve(cronGroups, { list, show, replace, remove });

function nameIn(c: AppContext): string {
  const name = pathParam(c, 'name');
  if (isCronName(name)) return name;
  throw invalidRequest('name', `The name of a group ${CRON_NAME_RULE}.`);
}

/** The entries of a group. @throws {ApiError} 404 when it has none */
async function membersOf(c: AppContext, name: string): Promise<Located[]> {
  const members = (await listCrons(c.env)).filter(({ group }) => group === name);
  if (members.length === 0) throw notFound('cron group', name, 'GET /ojs/v1/cron-groups lists all groups.');
  return members;
}

async function list(c: AppContext) {
  const paging = readPaging(c);
  const sizes = new Map<string, number>();
  for (const { group } of await listCrons(c.env)) if (group !== null) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  const all = [...sizes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => ({ name, count }));
  const page = pageByName(all, ({ name }) => name, paging);
  return json(c, also('CronGroupList', { items: page.items, pagination: page.pagination }));
}

async function show(c: AppContext) {
  const name = nameIn(c);
  const entries = (await readCrons(c.env, await membersOf(c, name))).map((view) => renderCron(view, true));
  return json(c, { name, group: { name, entries }, entries, count: entries.length });
}

async function remove(c: AppContext) {
  const name = nameIn(c);
  const names = (await membersOf(c, name)).map((entry) => entry.name);
  await deleteCrons(c.env, names);
  return json(c, { deleted: true as const, name, entries: names, count: names.length });
}

async function replace(c: AppContext) {
  const name = nameIn(c);
  const body = await readBody(c, MAX_BATCH_BYTES);
  const known = await listCrons(c.env);
  const unknown = new UnknownMembers();
  const definitions = await parseEntries(body, name, known, unknown);
  await mayCreate(c, definitions);
  const warned = warningsOf(await validateCrons(c.env, definitions, Date.now()), unknown);
  const { entries: saved, deleted } = await replaceCronGroup(c.env, name, definitions, known);
  const entries = saved.map(({ view }) => renderCron(view, true));
  const namesOf = (what: GroupEntry['change']) =>
    saved.filter(({ change }) => change === what).map(({ view }) => view.definition.name);
  const answer = {
    name,
    group: { name, entries },
    entries,
    count: entries.length,
    created: namesOf('created'),
    updated: namesOf('updated'),
    unchanged: namesOf('unchanged'),
    deleted,
    ...warned.members,
  };
  return json(c, answer, 200, warned.headers);
}

/** Reads every entry before any is changed. @throws {ApiError} with `details.index` of the first wrong one */
async function parseEntries(
  body: JsonObject,
  group: string,
  known: readonly Located[],
  unknown: UnknownMembers,
): Promise<CronDefinition[]> {
  const timezone = optional(body, 'timezone', readZone);
  if (body.entries === undefined) throw invalidRequest('entries', 'entries is required and must be an array.');
  const inputs = readList(MAX_ENTRIES, readObject)(body.entries, 'entries');
  const now = Date.now();
  const byName = new Map(known.map((entry) => [entry.name, entry]));
  const seen = new Set<string>();
  const definitions: CronDefinition[] = [];
  for (const [index, input] of inputs.entries()) {
    try {
      const path = `entries[${index}]`;
      const existing = typeof input.name === 'string' ? byName.get(input.name) : undefined;
      const definition = await parseCron(input, {
        now,
        path,
        group,
        unknown,
        defaults: { enabled: existing?.enabled, timezone },
      });
      if (seen.has(definition.name)) {
        throw invalidRequest(`${path}.name`, `${path}.name "${definition.name}" is listed twice.`);
      }
      seen.add(definition.name);
      if (existing && existing.group !== null && existing.group !== group) {
        throw conflict(`Cron ${definition.name} belongs to the group ${existing.group}.`, {
          resource_type: 'cron',
          resource_id: definition.name,
          group: existing.group,
        });
      }
      definitions.push(definition);
    } catch (error) {
      throw atIndex(error, index);
    }
  }
  return definitions;
}
