import type { StreamReceipt, StreamRequest } from '../../../rpc/workers';
import type { Host } from '../../feature';
import { fence, notActive } from '../../jobs/fence';
import { writeStream } from '../../jobs/streams';
import { mustFindForReport } from '../../read/find';
import { stateOf } from '../../store/rows';

/** Output streams of jobs that workers have pulled. */
export class Streams {
  constructor(private readonly host: Host) {}

  /** Shows chunks. @returns once they are written @throws {ApiError} 404; 409 unless the attempt runs; 413 */
  take(request: StreamRequest): Promise<StreamReceipt> {
    const { q, now } = this.host;
    const { row } = mustFindForReport(q, request.job_id);
    const active = row && q.store.leases.active.get(row.key);
    if (!row || !active) throw notActive(request.job_id, row ? stateOf(row, false, now()) : 'completed');
    fence(q, row, active, request);
    return writeStream(this.host, row, active, request);
  }
}
