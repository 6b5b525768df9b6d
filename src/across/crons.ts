/**
 * Cron entries wherever they are: the directory knows each name's queue. A change is noted there, made, then noted as
 * done (`src/directory/crons.ts`); one that was cut off is finished by the next.
 */

import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { ApiError, atIndex, notFound, type Outcome, unsupported, unwrap } from '../job/errors';
import type { CronPlace, CronSummary, CronView } from '../rpc/cron';
import { MAX_QUEUES_AT_ONCE } from '../rpc/directory';
import type { QueueApi } from '../rpc/queue';
import { directoryObject, queueObject } from '../rpc/stubs';
import type { CronDefinition } from '../schedules/definition';
import { refuseUnknownOptionsIn } from './known-options';
import { MAX_WHOLE_PAGE } from './paging';
import { queuesOf } from './queues';

/** A name that no queue knows expires this long after its last change, ms. No change is under way for longer. */
const FORGET_AFTER_MS = 120_000;

const CHANGE_TRIES = 3;

/** 404 for a name that no entry has. */
export const noCron = (name: string): ApiError => notFound('cron', name, 'GET /ojs/v1/cron lists all entries.');

/** Runs `call` on the queue that has the entry. @throws {ApiError} 404 */
export async function withCron<T>(
  env: Env,
  name: string,
  call: (queue: QueueApi, queueName: string) => Promise<Outcome<T>>,
): Promise<T> {
  const place = await directoryObject(env).cronPlace(name);
  if (!place) throw noCron(name);
  for (const queue of [place.queue, ...place.others]) {
    const outcome = await call(queueObject(env, queue), queue);
    if (outcome.ok || outcome.error.code !== 'not_found') return unwrap(outcome);
  }
  if (Date.now() - place.version > FORGET_AFTER_MS) await directoryObject(env).dropCron(name, place.version);
  throw noCron(name);
}

/** The entry with this name. @throws {ApiError} 404 */
export const readCron = async (env: Env, name: string): Promise<CronView> =>
  withCron(env, name, (queue) => queue.cron(name));

export const findCron = (env: Env, name: string): Promise<CronView | undefined> => ifThere(readCron(env, name));

/** What comes of `work`; undefined when there is no such entry. */
export async function ifThere<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ApiError && error.data.code === 'not_found') return undefined;
    throw error;
  }
}

/** Creates or replaces an entry, free if equal to `before`. @param exact refuse (409) if it changed since `before` */
export async function saveCron(
  env: Env,
  definition: CronDefinition,
  before: CronView | undefined,
  exact = false,
): Promise<CronView & { created: boolean }> {
  if (before && JSON.stringify(before.definition) === JSON.stringify(definition)) return { ...before, created: false };
  const { name, queue } = definition;
  await refuseUnknownOptionsIn(env, queue, JSON.stringify(definition.template));
  const target = queueObject(env, queue);
  // Before the other queue releases it, it must be certain that this one takes it.
  if (before && before.definition.queue !== queue) unwrap(await target.checkCron(definition));
  const directory = directoryObject(env);
  const { version, others } = await directory.placeCron(name, queue);
  let left: { queue: string; view: CronView } | undefined;
  for (const other of others) {
    const view = unwrap(await queueObject(env, other).handOffCron(definition, version));
    if (view) left = { queue: other, view };
  }
  const saved = unwrap(
    await target.putCron({
      definition,
      version,
      ...(left && { run: left.view.run }),
      ...(exact && before && !left && { basedOn: before.version }),
    }),
  );
  if (left) unwrap(await queueObject(env, left.queue).confirmCron(name, version));
  await directory.confirmCron(name, version);
  return saved;
}

/** Changes an entry, again while others interfere. @param change makes the definition @throws {ApiError} 404, 409 */
export async function changeCron(
  env: Env,
  name: string,
  change: (before: CronDefinition) => Promise<CronDefinition>,
): Promise<CronView> {
  for (let tries = 1; ; tries++) {
    const before = await readCron(env, name);
    const definition = await change(before.definition);
    try {
      return await saveCron(env, definition, before, true);
    } catch (error) {
      const overtaken = error instanceof ApiError && error.data.code === 'conflict';
      if (!overtaken || tries === CHANGE_TRIES) throw error;
    }
  }
}

/** Deletes an entry. @returns the deleted entry. @throws {ApiError} 404 */
export async function deleteCron(env: Env, name: string): Promise<CronView> {
  const directory = directoryObject(env);
  const place = await directory.cronPlace(name);
  if (!place) throw noCron(name);
  const { queue, others, version }: CronPlace = await directory.placeCron(name, place.queue);
  let deleted: CronView | undefined;
  for (const owner of [queue, ...others]) {
    deleted = unwrap(await queueObject(env, owner).removeCron(name, version)) ?? deleted;
  }
  await directory.dropCron(name, version);
  if (!deleted) throw noCron(name);
  return deleted;
}

function tooLarge(count: number): ApiError {
  const message = `These ${count} schedules have more than ${MAX_WHOLE_PAGE} bytes.`;
  return unsupported(message, { limit: count, max_bytes: MAX_WHOLE_PAGE }, 'Ask for fewer per page.');
}

export interface Located extends CronSummary {
  queue: string;
}

/** Every entry there is, by name. @param named only of these queues @throws {ApiError} 422 when they are too many */
export async function listCrons(env: Env, named?: readonly string[]): Promise<Located[]> {
  const known = named ?? (await directoryObject(env).cronQueues(MAX_QUEUES_AT_ONCE + 1));
  const queues = await queuesOf(env, { queues: known });
  const lists = await inParallel(queues, async (queue) =>
    (await queueObject(env, queue).cronSummaries()).map((summary) => ({ ...summary, queue })),
  );
  return lists.flat().sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** These entries in order, without missing ones. @param isPage bound the answer: @throws {ApiError} 422 beyond it */
export async function readCrons(env: Env, located: readonly Located[], isPage = false): Promise<CronView[]> {
  const found = new Map<string, CronView>();
  let chars = 0;
  await inParallel([...Map.groupBy(located, ({ queue }) => queue)], async ([queue, group]) => {
    for (let wanted = group.map(({ name }) => name); wanted.length > 0; ) {
      const { crons, omitted } = await queueObject(env, queue).cronsNamed(wanted);
      for (const view of crons) {
        found.set(view.definition.name, view);
        chars += JSON.stringify(view.definition).length;
      }
      if (isPage && chars > MAX_WHOLE_PAGE) throw tooLarge(located.length);
      wanted = omitted;
    }
  });
  return located.flatMap(({ name }) => found.get(name) ?? []);
}

/** Changes under way at a time. */
const WIDTH = 10;

export interface GroupEntry {
  view: CronView;
  change: 'created' | 'updated' | 'unchanged';
}

/**
 * Makes `definitions` the entries of the group. @param known all existing entries
 * @returns the entries in the order of the definitions, and the names of those that were deleted
 * @throws {ApiError} with `details.index` of the first definition that could not be saved
 */
export async function replaceCronGroup(
  env: Env,
  group: string,
  definitions: readonly CronDefinition[],
  known: readonly Located[],
): Promise<{ entries: GroupEntry[]; deleted: string[] }> {
  const listed = new Set(definitions.map(({ name }) => name));
  const gone = known.filter((entry) => entry.group === group && !listed.has(entry.name)).map(({ name }) => name);
  const existing = known.filter(({ name }) => listed.has(name));
  const before = new Map((await readCrons(env, existing)).map((view) => [view.definition.name, view]));
  const save = async (definition: CronDefinition, index: number): Promise<GroupEntry> => {
    try {
      const former = before.get(definition.name);
      const view = await saveCron(env, definition, former);
      const unchanged = former !== undefined && view.version === former.version;
      return { view, change: view.created ? 'created' : unchanged ? 'unchanged' : 'updated' };
    } catch (error) {
      throw atIndex(error, index);
    }
  };
  const entries = await inParallel([...definitions.entries()], ([index, definition]) => save(definition, index), WIDTH);
  // Deletes last, so that a change that fails halfway removes nothing.
  await deleteCrons(env, gone);
  return { entries, deleted: gone };
}

/** Deletes these entries; an entry that is already deleted is not an error. */
export async function deleteCrons(env: Env, names: readonly string[]): Promise<void> {
  await inParallel(names, (name) => ifThere(deleteCron(env, name)), WIDTH);
}
