/**
 * Groups of cron entries, replaced as a whole: new ones added, changed ones replaced, others of the group deleted;
 * unchanged ones are skipped at no cost.
 */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import type { CronDefinition } from '../job/cron/definition';
import { atIndex } from '../job/errors';
import type { CronView } from '../rpc/cron';
import { deleteCron, ifThere, type Located, readCrons, saveCron } from './crons';

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
