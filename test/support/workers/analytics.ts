/** Stands for the data set of the platform: keeps what is written to it. */
import { WorkerEntrypoint } from 'cloudflare:workers';

const points: unknown[] = [];

export class Dataset extends WorkerEntrypoint {
  writeDataPoint(point: unknown): void {
    points.push(point);
  }

  /** What was written since the last call. */
  take(): unknown[] {
    return points.splice(0);
  }
}

export default { fetch: () => new Response(null, { status: 404 }) };
