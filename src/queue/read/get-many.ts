/** Reading several jobs at once. */
import type { JobView } from '../../job/record';
import { bytesOfView, MAX_ANSWER_BYTES } from '../../job/size';
import type { StoredQueue } from '../store/parts';
import { find, viewOf } from './find';

export function getMany(q: StoredQueue, ids: readonly string[], now: number): { jobs: JobView[]; omitted: string[] } {
  const jobs: JobView[] = [];
  const omitted: string[] = [];
  let bytes = 0;
  for (const id of ids) {
    const found = find(q, id);
    if (!found) continue;
    const view = omitted.length === 0 ? viewOf(q, found, now) : undefined;
    bytes += view ? bytesOfView(view) : 0;
    if (view && (jobs.length === 0 || bytes <= MAX_ANSWER_BYTES)) jobs.push(view);
    else omitted.push(id);
  }
  return { jobs, omitted };
}
