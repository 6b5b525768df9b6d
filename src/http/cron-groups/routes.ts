/**
 * Groups of cron entries: an application declares all of its schedules at once, as often as it likes. What is new is added, what
 * has changed is replaced, what is no longer listed is deleted; what is the same is left alone, with its history and its next
 * fire, and costs nothing. Entries of other groups, and those of none that are not listed, are not touched.
 */
import { Hono } from 'hono';
import { deleteCron, type Located, listCrons, readCrons, saveCron } from '../../across/crons';
import { inParallel } from '../../durable/parallel';
import { CRON_NAME_RULE, type CronDefinition, isCronName, parseCron, readZone } from '../../job/cron/definition';
import { optional, readList, readObject } from '../../job/envelope/fields';
import { atIndex } from '../../job/envelope/parse';
import { ApiError, conflict, invalidRequest, notFound } from '../../job/errors';
import type { CronView } from '../../rpc/cron';
import type { AppContext, AppEnv } from '../context';
import { renderCron } from '../cron/render';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../request/body';
import { pageByName, readPaging } from '../request/pagination';
import { json } from '../respond';

/** Entries of one group at most. */
const MAX_ENTRIES = 1000;

/** Changes under way at a time. */
const WIDTH = 10;

/** Routes below `/ojs/v1`. */
export function cronGroupRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.get('/cron-groups', listGroups);
  routes.get('/cron-groups/:name', async (c) => {
    const name = nameIn(c);
    const entries = (await readCrons(c.env, await membersOf(c, name))).map((view) => renderCron(view, true));
    return json(c, { name, group: { name, entries }, entries, count: entries.length });
  });
  routes.put('/cron-groups/:name', replaceGroup);
  routes.delete('/cron-groups/:name', async (c) => {
    const name = nameIn(c);
    const members = await membersOf(c, name);
    await inParallel(members, (entry) => deleteIfThere(c, entry.name), WIDTH);
    return json(c, { deleted: true, name, entries: members.map((entry) => entry.name), count: members.length });
  });
  return routes;
}

function nameIn(c: AppContext): string {
  const name = c.req.param('name') ?? '';
  if (isCronName(name)) return name;
  throw invalidRequest('name', `The name of a group ${CRON_NAME_RULE}.`);
}

/** The entries of a group. @throws {ApiError} 404 when it has none */
async function membersOf(c: AppContext, name: string): Promise<Located[]> {
  const members = (await listCrons(c.env)).filter(({ group }) => group === name);
  if (members.length === 0) throw notFound('cron group', name, 'GET /ojs/v1/cron-groups lists all groups.');
  return members;
}

async function listGroups(c: AppContext): Promise<Response> {
  const paging = readPaging(c);
  const sizes = new Map<string, number>();
  for (const { group } of await listCrons(c.env)) if (group !== null) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  const all = [...sizes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => ({ name, count }));
  const page = pageByName(all, ({ name }) => name, paging);
  return json(c, { groups: page.items, items: page.items, pagination: page.pagination });
}

async function replaceGroup(c: AppContext): Promise<Response> {
  const name = nameIn(c);
  const body = await readBody(c, MAX_BATCH_BYTES);
  const known = await listCrons(c.env);
  const definitions = await parseEntries(body, name, known);
  const listed = new Set(definitions.map((definition) => definition.name));
  const gone = known.filter((entry) => entry.group === name && !listed.has(entry.name));
  const before = new Map(
    (
      await readCrons(
        c.env,
        known.filter((entry) => listed.has(entry.name)),
      )
    ).map((view) => [view.definition.name, view]),
  );
  const done = await inParallel(
    definitions.map((definition, index) => ({ definition, index })),
    ({ definition, index }) => saveEntry(c, definition, before.get(definition.name), index),
    WIDTH,
  );
  // Last, so that a change that cannot be made whole takes nothing away.
  await inParallel(gone, (entry) => deleteIfThere(c, entry.name), WIDTH);
  const entries = done.map(({ view }) => renderCron(view, true));
  const namesOf = (what: Change) =>
    done.filter(({ change }) => change === what).map(({ view }) => view.definition.name);
  return json(c, {
    name,
    group: { name, entries },
    entries,
    count: entries.length,
    created: namesOf('created'),
    updated: namesOf('updated'),
    unchanged: namesOf('unchanged'),
    deleted: gone.map((entry) => entry.name),
  });
}

/** Reads every entry before any is changed. @throws {ApiError} with `details.index` of the first wrong one */
async function parseEntries(body: JsonObject, group: string, known: readonly Located[]): Promise<CronDefinition[]> {
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

type Change = 'created' | 'updated' | 'unchanged';

async function saveEntry(
  c: AppContext,
  definition: CronDefinition,
  before: CronView | undefined,
  index: number,
): Promise<{ view: CronView; change: Change }> {
  try {
    const view = await saveCron(c.env, definition, before);
    const unchanged = before !== undefined && view.version === before.version;
    return { view, change: view.created ? 'created' : unchanged ? 'unchanged' : 'updated' };
  } catch (error) {
    throw atIndex(error, index);
  }
}

/** Deletes an entry, unless somebody else was faster. */
async function deleteIfThere(c: AppContext, name: string): Promise<void> {
  try {
    await deleteCron(c.env, name);
  } catch (error) {
    if (!(error instanceof ApiError && error.data.code === 'not_found')) throw error;
  }
}
