/** Enqueues of which one job is made: when it starts, and what it then says of itself. */
import { utf8Bytes } from '../bytes';
import { parseExactly } from '../envelope/exact';
import { MAX_ENVELOPE_BYTES } from '../envelope/names';
import type { Coalesced, JobBody, NewJob, UniquePolicy } from '../record';
import type { JobState } from '../states';
import { MAX_ACCUMULATED } from './policy';

/** A job that newcomers change, or take the place of. Members beyond the first three are read only when they count. */
export interface Target {
  readonly state: JobState | 'undecided';
  readonly createdAt: number | undefined;
  /** A handler or worker has had the job: its arguments must not change any more. */
  readonly hasRun: boolean;
  /** When it becomes available, while it is scheduled; epoch ms. */
  readonly dueAt: number | undefined;
  /** JSON of its {@link JobBody}. */
  readonly body: string;
}

/** Bytes of what a body says of the enqueues that it stands for, at most. */
const COALESCED_BYTES = 64;

const coalescedIn = (body: JobBody, createdAt: number): Coalesced => body.coalesced ?? { since: createdAt, calls: 1 };

/** The job, to start at another time (epoch ms), or at once. @param coalesced what it stands for, where that is news */
export function startingAt(job: NewJob, at: number | undefined, coalesced = job.coalesced): NewJob {
  const { scheduledAt: _, ...rest } = job;
  const body = bodyStartingAt(parseExactly(job.body) as JobBody, at, coalesced);
  return { ...rest, ...(at !== undefined && { scheduledAt: at }), ...(coalesced && { coalesced }), body };
}

const bodyStartingAt = (
  { scheduled_at: _, ...body }: JobBody,
  at: number | undefined,
  coalesced: Coalesced | undefined,
): string =>
  JSON.stringify({ ...body, ...(coalesced && { coalesced }), ...(at !== undefined && { scheduled_at: at }) });

/** A job with the schedule of the one it replaces. @param existing JSON of that one's {@link JobBody} */
export const keepSchedule = (job: NewJob, existing: string): NewJob =>
  startingAt(job, (JSON.parse(existing) as JobBody).scheduled_at);

/** A job that continues the series of the one it replaces: with its own delay, bounded by the longest wait. */
export function continued(job: NewJob, replaced: Target, maxWaitMs: number, now: number): NewJob {
  const before = coalescedIn(JSON.parse(replaced.body) as JobBody, replaced.createdAt ?? now);
  const own = job.coalesced ?? { since: now, calls: 1 };
  const coalesced = { since: Math.min(before.since, own.since), calls: before.calls + own.calls };
  const { scheduledAt: asked } = job;
  const last = coalesced.since + maxWaitMs;
  if (asked === undefined || asked <= last) return startingAt(job, asked, coalesced);
  return startingAt(job, last > now ? last : undefined, coalesced);
}

/** Newcomers that become a part of a job that waits. */
export class Gathering implements Target {
  readonly hasRun = false;
  readonly createdAt: number | undefined;
  state: Target['state'];
  dueAt: number | undefined;
  private readonly written: JobBody;
  private readonly newcomers: unknown[][] = [];
  private readonly coalesced: Coalesced;
  private bytes: number;
  private isMoved = false;

  /** @param now epoch ms */
  constructor(
    target: Target,
    private readonly now: number,
  ) {
    this.createdAt = target.createdAt;
    this.state = target.state;
    this.dueAt = target.dueAt;
    this.written = parseExactly(target.body) as JobBody;
    this.coalesced = { ...coalescedIn(this.written, target.createdAt ?? now) };
    this.bytes = utf8Bytes(target.body) + COALESCED_BYTES;
  }

  get taken(): number {
    return this.newcomers.length;
  }

  get isChanged(): boolean {
    return this.isMoved || this.taken > 0;
  }

  /** Takes a newcomer, and puts the start off if that is what its policy says. @returns false: it is full */
  take(job: NewJob, { max_count = MAX_ACCUMULATED, max_wait_ms }: UniquePolicy): boolean {
    const { args } = parseExactly(job.body) as JobBody;
    // Its brackets make up for the comma before.
    const bytes = this.bytes + utf8Bytes(JSON.stringify(args));
    if (this.coalesced.calls >= max_count || bytes > MAX_ENVELOPE_BYTES) return false;
    this.bytes = bytes;
    this.coalesced.calls++;
    this.newcomers.push(args);
    // One that is due already keeps its place.
    if (max_wait_ms !== undefined && this.state === 'scheduled') {
      this.startAt(Math.min(job.scheduledAt ?? this.now, this.coalesced.since + max_wait_ms));
    }
    return true;
  }

  /** No more comes to it: it waits for nothing. */
  close(): void {
    if (this.state === 'scheduled') this.startAt(this.now);
  }

  private startAt(at: number): void {
    if (at === this.dueAt) return;
    this.isMoved = true;
    this.dueAt = at > this.now ? at : undefined;
    this.state = at > this.now ? 'scheduled' : 'available';
    if (this.dueAt === undefined) delete this.written.scheduled_at;
    else this.written.scheduled_at = at;
  }

  get body(): string {
    const { written, newcomers } = this;
    const coalesced = newcomers.length > 0 ? this.coalesced : written.coalesced;
    const body = { ...written, args: [...written.args, ...newcomers.flat()] };
    return bodyStartingAt(body, written.scheduled_at, coalesced);
  }

  /** A job that is not enqueued yet, with all that it has taken. */
  applyTo(job: NewJob): NewJob {
    const { scheduledAt: _, ...rest } = job;
    const merged = this.taken > 0 && { coalesced: this.coalesced };
    const { scheduled_at } = this.written;
    return { ...rest, ...(scheduled_at !== undefined && { scheduledAt: scheduled_at }), ...merged, body: this.body };
  }
}
