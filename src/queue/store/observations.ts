/** What is noted of a queue's work: events, counts, and logs of running attempts. It cannot fail the work. */
import { EventLog } from '../../durable/event-log';
import { bytesOfLine, type LogLine, newestLines } from '../../job/log';
import type { Active } from './active';
import type { JobStore } from './job-store';
import { Meters } from './meters';

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

/** Bytes of lines in all. Beyond, the attempts that logged longest ago lose their lines. */
const MAX_BYTES = 8 * 1024 * 1024;

interface HeldLines {
  claim: number;
  lines: LogLine[];
  bytes: number;
}

/** Log lines of running attempts, in memory, written with an attempt's end; a restart loses them. */
class RunningLogs {
  /** By job key; the attempt that logged last comes last. */
  private readonly held = new Map<number, HeldLines>();
  private bytes = 0;
  /** Keys whose attempts the running transaction has ended. */
  private readonly ended = new Set<number>();
  /** What was held before, by key, of all that changed in the running transaction. */
  private before: [key: number, held: HeldLines | undefined][] = [];

  /** How often what is held has changed in the running transaction. */
  get changes(): number {
    return this.before.length;
  }

  /** Undoes the changes after the first `changes`: they were refused, or could not be written. */
  rollback(changes: number): void {
    for (const [key, held] of this.before.splice(changes).reverse()) this.put(key, held);
  }

  add({ key, claim }: Active, lines: readonly LogLine[]): void {
    const before = this.held.get(key);
    const kept = newestLines([...(before?.claim === claim ? before.lines : []), ...lines]);
    const bytes = kept.reduce((sum, line) => sum + bytesOfLine(line), 0);
    this.change(key, kept.length === 0 ? undefined : { claim, lines: kept, bytes });
    for (const oldest of this.held.keys()) {
      if (this.bytes <= MAX_BYTES) break;
      this.change(oldest, undefined);
    }
  }

  private change(key: number, held: HeldLines | undefined): void {
    this.before.push([key, this.held.get(key)]);
    this.put(key, held);
  }

  of({ key, claim }: Active): readonly LogLine[] {
    const held = this.held.get(key);
    return held?.claim === claim ? held.lines : [];
  }

  /** The lines kept of a job, with those of its attempt. @param active the attempt, if one runs or ends by this */
  with(before: readonly LogLine[] | undefined, active: Active | undefined): LogLine[] | undefined {
    const own = active ? this.of(active) : [];
    return own.length === 0 ? before && [...before] : newestLines([...(before ?? []), ...own]);
  }

  ends({ key }: Active): void {
    if (this.held.has(key)) this.ended.add(key);
  }

  /** The transaction is committed. @param isRunning does this claim of the job still run? */
  committed(isRunning: (key: number, claim: number) => boolean): void {
    for (const key of this.ended) if (!isRunning(key, this.held.get(key)?.claim ?? -1)) this.put(key, undefined);
    this.ended.clear();
    this.before = [];
  }

  private put(key: number, held: HeldLines | undefined): void {
    this.bytes += (held?.bytes ?? 0) - (this.held.get(key)?.bytes ?? 0);
    this.held.delete(key);
    if (held) this.held.set(key, held);
  }
}
