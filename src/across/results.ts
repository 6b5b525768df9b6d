/** Many jobs by their ids, wherever they are. */
import type { Env } from '../config';
import type { JobView } from '../job/record';
import { queueObject } from '../rpc/stubs';
import { askByHome } from './locate';

/** @returns the jobs that were found, in the order of the ids, and the ids of those that did not fit into a queue's answer */
export async function readJobs(env: Env, ids: readonly string[]): Promise<{ jobs: JobView[]; omitted: string[] }> {
  const found = new Map<string, JobView | 'omitted'>();
  const ask = async (queue: string, named: string[]) => {
    const { jobs, omitted } = await queueObject(env, queue).getMany(named);
    for (const view of jobs) found.set(view.record.id, view);
    for (const id of omitted) found.set(id, 'omitted');
  };
  await askByHome(env, ids, undefined, { ask, isFound: (id) => found.has(id) });
  const jobs = ids.flatMap((id) => found.get(id) ?? []).filter((view) => view !== 'omitted');
  return { jobs, omitted: ids.filter((id) => found.get(id) === 'omitted') };
}
