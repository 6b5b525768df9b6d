/** Reduces a queue whose bound was set below its backlog, in turns of the alarm, however long the backlog is. */
import type { Feature, Host } from '../../feature';
import { setShedding, shed } from '../../jobs/backpressure';

export class Shedding implements Feature {
  constructor(private readonly host: Host) {}

  due(now: number): number | undefined {
    return this.host.q.store.depth.isShedding ? now : undefined;
  }

  tidy(now: number): void {
    const { q } = this.host;
    if (q.store.depth.isShedding) setShedding(q, shed(q, now));
  }
}
