/**
 * Counts of a queue by type and minute, made where the store changes. They survive evictions, usually without rows:
 *
 *     put away (row 1 of `meters`)  +  since then: a short text in rows written anyway
 *                                         (lease of a claim · chunk of completed jobs · job that an attempt writes)
 *                                   +  jobs with later numbers, which are stored themselves
 *
 * The newest text holds everything since row 1. A transaction that wrote no such row puts it into row 0; longer than
 * {@link MAX_TEXT}, it is put away. After {@link MAX_UNCOUNTED} enqueued jobs there is a text, which bounds waking.
 */
import { sequenceOf } from '../../job/ids';
import type { Move } from '../../job/states';
import { COUNTED, FAILS } from '../../metrics/counted-moves';
import { type HistogramName, type Meter, newMeter, placeOf, placesOf } from '../../metrics/meter';
import { MINUTE_MS, type Point, startOf } from '../../metrics/series';
import type { Active } from './active';
import type { CountingSql } from './counting-sql';
import type { JobRow } from './job-row';
import {
  type Carrier,
  type Counted,
  type Counts,
  enqueuedSince,
  isSpecial,
  MAX_TYPES,
  merged,
  NO_TYPE,
  newestText,
  OTHER_TYPES,
  putAwayAt,
  readPutAway,
  TABLES,
  textOf,
  WRITTEN_WITH,
  writePutAway,
  writeText,
} from './meters-table';

/** The text is put away when it is longer, characters. */
const MAX_TEXT = 2_000;

/** If it cannot be put away, memory keeps no more than this, in characters: it rides in other rows. */
const MAX_HELD = 32 * 1024;

/** Jobs that may be enqueued before a text counts them. */
const MAX_UNCOUNTED = 1_000;

const ROWS = placeOf('rows');

interface Counting {
  readonly sql: SqlStorage;
  readonly written: CountingSql;
  readonly nextSequence: number;
  readonly blocks: {
    all(after: number, bodies: boolean): Iterable<Pick<JobRow, 'type' | 'created_at' | 'due_at' | 'priority'>>;
  };
}

export class Meters {
  /** Counted since the last putting away, by minute and type; the newest minute last. */
  private points: Counted[] = [];
  private present = new Map<string, Counted>();
  private minute = Number.NEGATIVE_INFINITY;
  /** Changes of the running transaction, three members each: where, at which place, how much. */
  private steps: (Counted | number)[] = [];
  /** What the transaction is about. */
  private touched: Counted[] = [];
  private readonly types = new Set<string>();
  private watched: Map<string, Meter> | undefined;
  /** Rises with everything that a text must have. */
  private version = 0;
  /** Up to where a text, or the row of what was put away, has it. */
  private stored = 0;
  private storedSequence = 1;
  private textLength = 0;
  private carrier: Carrier | undefined;
  /** The row of a job has carried a text of this transaction: a second one would only make rows longer. */
  private isCarried = false;
  /** Rows counted in advance, because the text must count the row that carries it. */
  private advance = 0;

  /** The latest of what was put away; undefined: it has to be read. */
  private putAwayLately: Point[] | undefined;
  /** Operators were notified that counting fails. */
  private isFailing = false;

  constructor(
    private readonly store: Counting,
    private readonly now: () => number = Date.now,
  ) {}

  open(): void {
    try {
      this.restore();
    } catch (error) {
      this.fails(error);
      // Whatever text is stored is older.
      this.version = this.now();
      this.beginAnew();
    }
    this.steps = [];
  }

  private restore(): void {
    const putAway = putAwayAt(this.store.sql);
    const text = newestText(this.store.sql, putAway?.version ?? -1);
    this.version = text?.version ?? putAway?.version ?? 0;
    this.stored = this.version;
    this.storedSequence = text?.sequence ?? (putAway ? (putAway.sequence ?? this.store.nextSequence) : 1);
    this.carrier = text?.carrier;
    for (const point of text?.points ?? []) this.points.push({ ...point, text: undefined, weight: 0 });
    for (const { type } of this.points) this.types.add(type);
    const inBlocks = this.store.blocks.all(this.storedSequence - 1, false);
    for (const { type, at, ...counts } of enqueuedSince(this.store.sql, this.storedSequence, inBlocks)) {
      const point = this.pointOf(type, at);
      this.add(point, placeOf('enqueued'), counts.enqueued);
      this.add(point, ROWS, counts.rows);
    }
  }

  // ---- what the store reports ------------------------------------------------------------------

  enqueued(type: string, count: number, now: number): void {
    this.add(this.touch(type, now, count), placeOf('enqueued'), count);
  }

  /** An attempt begins. @param since when the job became available, epoch ms */
  started(type: string, since: number, now: number): void {
    this.version++;
    this.addTime(this.touch(type, now), 'queue_time', now - since);
  }

  completed(type: string, startedAt: number, now: number): void {
    this.version++;
    const point = this.touch(type, now);
    this.add(point, placeOf('completed'), 1);
    this.addTime(point, 'completed', now - startedAt);
  }

  /** A job makes a move. @param active the attempt that it ends @returns is the row found that carries a text? */
  moved(move: Move, row: JobRow, after: JobRow, active: Active | undefined, now: number): boolean {
    if (this.carrier?.by === 'job' && this.carrier.key === row.key) this.version++;
    const counter = COUNTED[move];
    if (counter === undefined) return false;
    const point = this.touch(row.type, now);
    this.add(point, placeOf(counter), 1);
    // A job that has had a row since the last text is not counted among the later ones.
    if (counter !== 'enqueued' || sequenceOf(row.key) < this.storedSequence) this.version++;
    if (active && FAILS.has(move)) {
      this.add(point, placeOf('failed'), 1);
      this.addTime(point, 'failed', now - active.startedAt);
    }
    return after.ended_at === now || (active !== undefined && move === 'retry');
  }

  // ---- carriers --------------------------------------------------------------------------------

  /** What the row of a job is to carry that is about to be written; undefined: nothing, or another one carries it. */
  textForRow(key: number): string | undefined {
    if (this.isCarried || this.stored === this.version) return undefined;
    this.isCarried = true;
    return this.carried({ by: 'job', key });
  }

  carried(carrier: Carrier): string {
    this.countRows(WRITTEN_WITH[carrier.by]);
    const points = this.points.map((point) => {
      point.text ??= textOf(point);
      return point.text;
    });
    const text = `{"v":${this.version},"s":${this.store.nextSequence},"p":[${points.filter(Boolean).join(',')}]}`;
    this.stored = this.version;
    this.storedSequence = this.store.nextSequence;
    this.textLength = text.length;
    this.carrier = carrier;
    return text;
  }

  /** Writes a text that no row has carried. Failures are retried, and huge counts dropped: work must not fail by it. */
  flush(): void {
    try {
      this.write();
      this.isFailing = false;
    } catch (error) {
      this.fails(error);
      this.version++;
      if (this.textLength > MAX_HELD) this.beginAnew();
    }
  }

  private write(): void {
    const table = TABLES[this.carrier?.by ?? 'row'];
    if (table !== undefined && this.store.written.hasDeletedFrom(table)) this.version++;
    const isStored = this.stored === this.version && this.store.nextSequence - this.storedSequence < MAX_UNCOUNTED;
    if (isStored && this.textLength <= MAX_TEXT) return;
    const text = this.carried({ by: 'row' });
    if (text.length > MAX_TEXT) this.putAway();
    else writeText(this.store.sql, this.version, text);
  }

  /** Notes from now on what each commit adds, for {@link takeWatched}. */
  watch(): void {
    this.watched ??= new Map();
  }

  /** What commits have added since the last call, for at most `most` types; the next call returns the rest. */
  takeWatched(most: number): [type: string, meter: Meter][] {
    const taken = [...(this.watched ?? [])].slice(0, most);
    for (const [type] of taken) this.watched?.delete(type);
    return taken;
  }

  /** Rows were written for a type after the commit. */
  wroteLate(type: string, now: number): void {
    this.touch(type, now);
    this.publish();
  }

  publish(): void {
    this.countRows(0);
    const { watched } = this;
    if (watched) {
      this.eachStep(0, ({ type }, place, amount) => {
        const meter = watched.get(type) ?? newMeter();
        meter[place] = (meter[place] as number) + amount;
        watched.set(type, meter);
      });
    }
    for (const point of this.touched) point.weight = 0;
    this.touched = [];
    this.steps = [];
    this.isCarried = false;
    this.store.written.end();
  }

  mark() {
    const { version, stored, storedSequence, textLength, carrier, isCarried, advance, points, steps } = this;
    const texts = { version, stored, storedSequence, textLength, carrier, isCarried, advance };
    return { texts, points, steps: steps.length, statements: this.store.written.count };
  }

  rollback({ texts, points, steps, statements }: ReturnType<Meters['mark']>): void {
    this.eachStep(steps, (point, place, amount) => {
      point.meter[place] = (point.meter[place] as number) - amount;
      point.text = undefined;
    });
    this.steps.length = steps;
    this.store.written.rollback(statements);
    this.putAwayLately = undefined;
    // Points that came since are left, and count nothing.
    if (this.points !== points) this.begin(points);
    Object.assign(this, texts);
  }

  // ---- reading ---------------------------------------------------------------------------------

  /** Everything that was counted: by type, and by time as far as it is kept. */
  read(): Counts {
    return merged(readPutAway(this.store.sql), this.points);
  }

  /** Everything counted since a moment (epoch ms). Reads what was put away only when it changed. */
  since(from: number): Point[] {
    this.putAwayLately ??= merged(readPutAway(this.store.sql), []).points;
    this.putAwayLately = this.putAwayLately.filter(({ at }) => at >= from);
    return [...this.putAwayLately, ...this.points.filter(({ at }) => at >= from)];
  }

  private pointOf(type: string, now: number): Counted {
    const minute = startOf(now, MINUTE_MS);
    if (minute !== this.minute) {
      this.minute = minute;
      this.present = new Map(this.points.filter(({ at }) => at === minute).map((point) => [point.type, point]));
    }
    const known = this.present.get(type);
    if (known) return known;
    if (!this.types.has(type) && !isSpecial(type)) {
      if (this.types.size >= MAX_TYPES) return this.pointOf(OTHER_TYPES, now);
      this.types.add(type);
    }
    const point: Counted = { at: minute, type, meter: newMeter(), text: undefined, weight: 0 };
    this.present.set(type, point);
    this.points.push(point);
    return point;
  }

  private add(point: Counted, place: number, amount: number): void {
    point.meter[place] = (point.meter[place] as number) + amount;
    point.text = undefined;
    this.steps.push(point, place, amount);
  }

  private eachStep(from: number, visit: (point: Counted, place: number, amount: number) => void): void {
    for (let index = from; index < this.steps.length; index += 3) {
      visit(this.steps[index] as Counted, this.steps[index + 1] as number, this.steps[index + 2] as number);
    }
  }

  private touch(type: string, now: number, times = 1): Counted {
    const point = this.pointOf(type, now);
    if (point.weight === 0) this.touched.push(point);
    point.weight += times;
    return point;
  }

  private addTime(point: Counted, name: HistogramName, ms: number): void {
    const time = Math.max(0, ms);
    const { sum, bucket, most } = placesOf(name, time);
    // 0 stands for unknown.
    const longer = Math.max(1, time) - (point.meter[most] as number);
    if (longer > 0) this.add(point, most, longer);
    if (time > 0) this.add(point, sum, time);
    this.add(point, bucket, 1);
  }

  /** Distributes rows written since the last call over the transaction's types, or the queue. @param ahead of writes */
  private countRows(ahead: number): void {
    const written = this.store.written.take() + ahead - this.advance;
    this.advance = ahead;
    if (written === 0) return;
    const all = this.touched.reduce((sum, { weight }) => sum + weight, 0);
    if (all === 0) {
      this.add(this.pointOf(NO_TYPE, this.now()), ROWS, written);
      return;
    }
    let left = written;
    let heaviest: Counted | undefined;
    for (const point of this.touched) {
      const share = Math.trunc((written * point.weight) / all);
      if (share !== 0) this.add(point, ROWS, share);
      left -= share;
      if (!heaviest || point.weight > heaviest.weight) heaviest = point;
    }
    if (left !== 0 && heaviest) this.add(heaviest, ROWS, left);
  }

  /** Logs the failure once, and again when it has worked in between. */
  private fails(error: unknown): void {
    if (!this.isFailing) console.error('tocsin: what happens in a queue could not be counted:', error);
    this.isFailing = true;
  }

  /** What was counted since the last putting away is put away now, or lost. */
  private beginAnew(): void {
    this.begin([]);
    this.stored = this.version;
    this.storedSequence = this.store.nextSequence;
    this.textLength = 0;
  }

  private putAway(): void {
    const counts = this.read();
    for (const type of counts.totals.keys()) this.types.add(type);
    this.version++;
    this.putAwayLately = undefined;
    writePutAway(this.store.sql, { version: this.version, sequence: this.store.nextSequence, ...counts }, this.now());
    this.beginAnew();
  }

  private begin(points: Counted[]): void {
    this.points = points;
    this.present = new Map();
    this.minute = Number.NEGATIVE_INFINITY;
  }
}
