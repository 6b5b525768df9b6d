/** Counts what becomes of each thing that was found. Bounded, however much that is. */
import { own } from '../../job/own';
import type { Finding, FoundBroken, FoundJob, FoundLeft, FoundSchedule } from './found';

/** Most refusals that are named; all are counted. */
const MAX_NAMED = 100;
const MAX_PLACES = 1000;

/** `moved`: under `--dry-run` what would be; `superseded`: another job with the same unique key is there. */
export type Moved = ReturnType<typeof none>;

export interface Place {
  fromQueue: string;
  name: string;
  queue: string;
  type: string;
  jobs: number;
  schedules: number;
}

export type Remark = Omit<FoundLeft, 'kind'>;

export interface Refused extends Omit<FoundBroken, 'kind' | 'of'> {
  kind: FoundBroken['of'];
  code: string;
}

type Work = FoundJob | FoundSchedule;

const none = () => ({ found: 0, moved: 0, there: 0, superseded: 0, refused: 0 });

export class Tally {
  readonly jobs = none();
  readonly schedules = none();
  readonly #places = new Map<string, Place>();
  readonly #remarks = new Map<string, Remark>();
  readonly #left = new Map<string, Remark>();
  readonly refused: Refused[] = [];

  constructor(private readonly todo: Readonly<Record<string, string>>) {}

  found(work: Work, { queue, type }: { queue: string; type: string }): void {
    this[listOf(work)].found++;
    for (const what of work.remarks) count(this.#remarks, { what, count: 1, todo: own(this.todo, what) ?? '' });
    const key = JSON.stringify([work.queue, work.name, queue, type]);
    const names = { fromQueue: work.queue, name: work.name, queue, type };
    const place = this.#places.get(key) ?? { ...names, jobs: 0, schedules: 0 };
    place[listOf(work)]++;
    if (this.#places.size < MAX_PLACES) this.#places.set(key, place);
  }

  settled(work: Work, outcome: 'moved' | 'there' | 'superseded'): void {
    this[listOf(work)][outcome]++;
  }

  /** Something that was not taken. What could not even be read is found here. */
  refuse(found: Work | FoundBroken, code: string, message: string): void {
    const { id, queue, name } = found;
    const kind = found.kind === 'broken' ? found.of : found.kind;
    const list = this[kind === 'schedule' ? 'schedules' : 'jobs'];
    list.refused++;
    if (found.kind === 'broken') list.found++;
    if (this.refused.length < MAX_NAMED) this.refused.push({ kind, id, queue, name, code, message });
  }

  left({ what, count: many, todo }: FoundLeft): void {
    count(this.#left, { what, count: many, todo });
  }

  /** All of it, as it is printed. */
  report() {
    const [remarks, left] = [this.#remarks, this.#left].map((some) => [...some.values()]) as [Remark[], Remark[]];
    const { jobs, schedules, refused } = this;
    return { jobs, schedules, places: [...this.#places.values()], remarks, left, refused };
  }

  get failures(): number {
    return this.jobs.refused + this.schedules.refused;
  }
}

const listOf = ({ kind }: Pick<Finding, 'kind'>): 'jobs' | 'schedules' => (kind === 'schedule' ? 'schedules' : 'jobs');

function count(into: Map<string, Remark>, remark: Remark): void {
  const known = into.get(remark.what);
  if (known) known.count += remark.count;
  else into.set(remark.what, remark);
}
