/** Many jobs by their ids, wherever they are. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import type { JobView } from '../job/record';
import { queueObject } from '../rpc/stubs';
import { groupByHome } from './locate';
import { knownQueues } from './queues';

/**
 * Asks the queues that the ids name, then all others for what is left.
 * @returns the jobs that were found, and the ids of those that did not fit into a queue's answer
 */
export async function readJobs(env: Env, ids: readonly string[]): Promise<{ jobs: JobView[]; omitted: string[] }> {
  const jobs: JobView[] = [];
  const omitted: string[] = [];
  const ask = async (groups: ReadonlyMap<string, string[]>) => {
    const answers = await inParallel([...groups], ([queue, group]) => queueObject(env, queue).getMany(group));
    for (const answer of answers) {
      jobs.push(...answer.jobs);
      omitted.push(...answer.omitted);
    }
  };
  const groups = await groupByHome(env, ids);
  await ask(groups);
  const seen = new Set([...jobs.map(({ record }) => record.id), ...omitted]);
  const left = [...new Set([...groups.values()].flat())].filter((id) => !seen.has(id));
  if (left.length === 0) return { jobs, omitted };
  // An id chosen by a client may carry a route by accident.
  const elsewhere = new Map<string, string[]>();
  for (const queue of await knownQueues(env)) {
    const asked = new Set(groups.get(queue));
    const unasked = left.filter((id) => !asked.has(id));
    if (unasked.length > 0) elsewhere.set(queue, unasked);
  }
  await ask(elsewhere);
  return { jobs, omitted };
}
