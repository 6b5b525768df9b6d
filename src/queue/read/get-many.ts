/** Reading several jobs at once. */
import type { JobView } from '../../job/record';
import type { QueueState } from '../store/state';
import { find, viewOf } from './find';

/** Characters of bodies and results in one answer: a message holds 32 MiB. */
const MAX_CHARS = 8 * 1024 * 1024;

/** Those of these jobs that this queue has; the rest of what it has is named when the answer is full. */
export function getMany(q: QueueState, ids: readonly string[], now: number): { jobs: JobView[]; omitted: string[] } {
  const jobs: JobView[] = [];
  const omitted: string[] = [];
  let chars = 0;
  for (const id of ids) {
    const found = find(q, id);
    if (!found) continue;
    if (chars > MAX_CHARS) {
      omitted.push(id);
      continue;
    }
    const view = viewOf(q, found, now);
    jobs.push(view);
    chars += view.record.body.length + (view.record.result?.length ?? 0);
  }
  return { jobs, omitted };
}
