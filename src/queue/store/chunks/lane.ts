/** Jobs that were read, and wait for the others of their chunk. In memory only: rows say whether a job still waits. */
import { type ChunkSettings, MAX_CHUNK_BYTES } from '../../../job/chunk';
import { sequenceOf } from '../../../job/ids';

export interface Gathered {
  key: number;
  type: string;
  priority: number;
  /** Its place among those of its priority, and when it became available, epoch ms. */
  at: number;
  since: number;
  /** Characters of its body. */
  chars: number;
  /** It must not share a call. */
  isAlone: boolean;
  /** Whose job it is, where others in its lane may be of other groups. */
  group?: string;
  /** All others of its strict group wait for its end. */
  isHolder?: boolean;
  /** How jobs of its type are gathered. Absent: it is gathered only because others of its group wait for it. */
  settings?: ChunkSettings;
}

/** What a lane could give now. */
export interface Offer {
  jobs: readonly Gathered[];
  /** However long it waited, no other job would join these. */
  isClosed: boolean;
}

const NOTHING: Offer = { jobs: [], isClosed: false };

const split = (jobs: readonly Gathered[], isFirst: (job: Gathered) => boolean): [Gathered[], Gathered[]] => [
  jobs.filter(isFirst),
  jobs.filter((job) => !isFirst(job)),
];

/** The jobs of one chunk, and those of the next ones, in order. */
export class ChunkLane {
  readonly jobs: Gathered[] = [];
  /** When it starts at the latest, epoch ms; of one moment, the lower turn comes first. */
  moment = Number.POSITIVE_INFINITY;
  turn = 0;
  /** Its virtual time: jobs taken, divided by its weight. */
  time = 0;
  /** With this number of jobs it gave less than a chunk: it waits for another one, or for its moment. */
  spared = 0;
  /** Its group may start no job now, or its first job is for another consumer. */
  isHeld = false;
  /** The first job that was passed over: it and those behind it are read again when those before it are taken. */
  private cutFrom: Gathered | undefined;
  private chars = 0;

  /** @param group of all jobs; absent: any @param isStrict its jobs run in order, whatever their types */
  constructor(
    readonly name: string,
    readonly group: string | undefined,
    readonly isStrict: boolean,
    /** The lane that these jobs belong to, which others of their type do not leave meanwhile. */
    readonly parkedFrom?: ChunkLane,
  ) {}

  get nextChars(): number {
    return Math.min(this.chars, MAX_CHUNK_BYTES);
  }

  get isCut(): boolean {
    return this.cutFrom !== undefined;
  }

  /** Is the place of this job before those that were passed over, or do all others wait for it? */
  takes(job: Gathered): boolean {
    return !this.cutFrom || job.isHolder === true || this.precedes(job, this.cutFrom);
  }

  add(job: Gathered): void {
    const { jobs } = this;
    let at = jobs.length;
    while (at > 0 && this.precedes(job, jobs[at - 1] as Gathered)) at--;
    jobs.splice(at, 0, job);
    this.chars += job.chars;
  }

  /** Jobs of its next chunk. */
  get wanted(): number {
    return this.jobs[0]?.settings?.size ?? 1;
  }

  /** Passes over the second half of its jobs, but keeps a chunk, and the job that the others wait for. */
  cut(): Gathered[] {
    const from = Math.max(this.wanted, this.jobs.length >> 1);
    const [holders, others] = split(this.jobs.slice(from), ({ isHolder }) => isHolder === true);
    if (others.length === 0) return [];
    this.cutOff(from, this.jobs.length);
    for (const holder of holders) this.add(holder);
    this.cutFrom = others[0];
    return others;
  }

  takeGroup(group: string): Gathered[] {
    const [own, others] = split(this.jobs, (job) => job.group === group);
    this.cutOff(0, this.jobs.length);
    for (const job of others) this.add(job);
    return own;
  }

  remove(key: number): void {
    const at = this.jobs.findIndex((job) => job.key === key);
    if (at >= 0) this.cutOff(at, 1);
  }

  /** Removes several, most of them the first ones. */
  removeAll(keys: ReadonlySet<number>): void {
    let first = 0;
    while (first < this.jobs.length && keys.has((this.jobs[first] as Gathered).key)) first++;
    this.cutOff(0, first);
    if (first < keys.size) for (const key of keys) this.remove(key);
  }

  private cutOff(at: number, count: number): void {
    for (const { chars } of this.jobs.splice(at, count)) this.chars -= chars;
  }

  private precedes(a: Gathered, b: Gathered): boolean {
    if (!this.isStrict && a.priority !== b.priority) return a.priority > b.priority;
    return a.at < b.at || (a.at === b.at && sequenceOf(a.key) < sequenceOf(b.key));
  }

  /** The jobs that may go together now, the first one included. @param holders of a strict group: must end first */
  offer(holders: readonly number[]): Offer {
    const { jobs } = this;
    const [first] = jobs;
    if (!first) return NOTHING;
    if (!this.isStrict) return { jobs, isClosed: first.isAlone };
    const begun = holders.length === 0 ? undefined : jobs.find(({ key }) => holders.includes(key));
    const leader = begun ?? first;
    if (!leader.settings) return NOTHING;
    const chunk = [leader];
    if (leader.isAlone || holders.length > 1) return { jobs: chunk, isClosed: true };
    for (const job of jobs) {
      if (chunk.length >= leader.settings.size) break;
      if (job === leader) continue;
      if (job.type !== leader.type || job.isAlone) return { jobs: chunk, isClosed: true };
      chunk.push(job);
    }
    return { jobs: chunk, isClosed: false };
  }

  /** When a chunk of these jobs starts at the latest, epoch ms; -Infinity: now. */
  startsAt({ jobs, isClosed }: Offer): number {
    const settings = jobs[0]?.settings;
    if (!settings) return Number.POSITIVE_INFINITY;
    const chars = this.isStrict ? jobs.reduce((sum, job) => sum + job.chars, 0) : this.chars;
    const isFull = (jobs.length >= settings.size || chars >= MAX_CHUNK_BYTES) && this.jobs.length !== this.spared;
    if (isFull || isClosed) return Number.NEGATIVE_INFINITY;
    return jobs.reduce((oldest, { since }) => Math.min(oldest, since), Number.POSITIVE_INFINITY) + settings.wait_ms;
  }
}
