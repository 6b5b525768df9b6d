/** Workers in answers. */
import { formatInstant } from '../../job/time';
import type { WorkerView } from '../../rpc/directory';

export function renderWorker({ labels, started_at, last_heartbeat_at, ...worker }: WorkerView) {
  const seen = formatInstant(last_heartbeat_at);
  return {
    hostname: null,
    pid: null,
    queues: [],
    concurrency: null,
    version: null,
    ...worker,
    started_at: formatInstant(started_at),
    last_heartbeat_at: seen,
    last_heartbeat: seen,
    metadata: labels === undefined ? {} : { labels },
  };
}
