/** What is noted of a queue's work: events, counts, and logs of running attempts. It cannot fail the work. */
import { EventLog } from '../../durable/event-log';
import type { JobStore } from './job-store';
import { Meters } from './meters';
import { RunningLogs } from './running-logs';

export class Observations {
  readonly events: EventLog;
  readonly meters: Meters;
  readonly logs = new RunningLogs();

  constructor(
    name: string,
    route: number,
    private readonly store: JobStore,
  ) {
    this.events = new EventLog(name, route);
    this.meters = new Meters(store);
  }

  publish(): void {
    const { active } = this.store.leases;
    this.logs.committed((key, claim) => active.get(key)?.claim === claim);
    this.events.publish();
    this.meters.publish();
  }
}
