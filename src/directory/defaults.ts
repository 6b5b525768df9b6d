/**
 * What holds in all queues, and getting it there: settings of every queue which says nothing else (`_default`), and what
 * operators put in the place of the limits of keys, whether a queue has met the key or not.
 *
 * A change is one row, written together with the names of all queues there are: those have not heard of it yet. The courier
 * tells each until it has confirmed: one letter for many queues, so that a change costs two rows and not two for each queue.
 * A queue that is created later gets the settings with its number. Versions rise: what comes late to a queue changes nothing.
 */
import { AlarmClock } from '../durable/alarm-clock';
import { Courier, type CourierHost, derived } from '../durable/courier';
import { STANDBY_MS } from '../durable/outbox';
import { inParallel } from '../durable/parallel';
import type { Schema } from '../durable/schema';
import { put, rows } from '../durable/sql';
import { mayNotShorten } from '../job/errors';
import { holding, type LimitOverrides, withOverride } from '../job/limits/overrides';
import type { LimitOverride } from '../job/limits/policy';
import { changed, keepsLess, type QueueConfig, type QueueDefaults, type SettingsChange } from '../job/settings';

/** Queues told with one letter, and letters sent in one event: a Durable Object may call others only so often in one. */
const QUEUES_PER_LETTER = 100;
const LETTERS_PER_EVENT = 4;

/** Tells one queue. Rejects when that was not possible. */
export type Tell = (queue: string, defaults: QueueDefaults) => Promise<void>;

type Row = { version: number; config: string; limit_overrides: string; untold: string };

/** What the settings of all queues need of the object around them. */
export interface DefaultsHost extends Pick<CourierHost, 'now' | 'keepAlive'> {
  readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync' | 'setAlarm' | 'deleteAlarm'>;
}

export class DefaultsStore {
  private readonly clock: AlarmClock;
  private readonly courier: Courier;
  /** Queues that could not be told since the last pause, and why. */
  private readonly failed = new Map<string, unknown>();

  constructor(
    private readonly host: DefaultsHost,
    private readonly tables: Schema,
    private readonly tell: Tell,
  ) {
    const { storage, now } = host;
    // Which alarm is stored need not be known: the first that is armed here is the earliest there has to be.
    this.clock = new AlarmClock(storage, null);
    const letters = derived({
      kind: 'settings of',
      open: () => (this.untold > 0 ? ['all queues'] : []),
      deliver: () => this.tellSome(),
    });
    const wakeAt = (at: number) => this.clock.arm(at, now());
    const around = { now, wakeAt, keepAlive: (promise: Promise<unknown>) => host.keepAlive(promise) };
    this.courier = new Courier([letters], around, { sends: LETTERS_PER_EVENT });
  }

  /** The settings; undefined when nobody has ever made any. */
  read(): QueueDefaults | undefined {
    const row = this.row();
    return row && { version: row.version, config: JSON.parse(row.config), overrides: JSON.parse(row.limit_overrides) };
  }

  /**
   * Merges a change, of which all of `queues` must hear.
   * @param now epoch ms
   * @param mayPurge false: the queues there are must keep ended jobs for as long as now
   * @throws {ApiError} 403
   */
  change(change: SettingsChange, queues: readonly string[], now: number, mayPurge = true): QueueDefaults {
    const before = this.read()?.config ?? {};
    const after = changed(before, change);
    const less = mayPurge || queues.length === 0 ? undefined : keepsLess(before, after);
    if (less !== undefined) throw mayNotShorten(less);
    return this.replace(after, this.overrides(now), queues, now);
  }

  /** What operators put in the place of the limits of keys, as it holds at `now` (epoch ms). */
  overrides(now: number): LimitOverrides {
    return holding(this.read()?.overrides, now);
  }

  /**
   * Puts other limits in the place of a key's own, or takes them back (null), in all of `queues` and those to come. Those
   * that have ended are forgotten with it. Writes nothing when they are what they were.
   * @param now epoch ms
   * @returns whether there was an override
   * @throws {ApiError} 409 when there are too many
   */
  override(key: string, override: LimitOverride | null, queues: readonly string[], now: number): boolean {
    const before = this.overrides(now);
    const present = Object.hasOwn(before, key) ? before[key] : null;
    if (JSON.stringify(present) !== JSON.stringify(override)) {
      this.replace(this.read()?.config ?? {}, withOverride(before, key, override), queues, now);
    }
    return present !== null;
  }

  /** One row written; the alarm stands by. */
  private replace(
    config: QueueConfig,
    overrides: LimitOverrides,
    queues: readonly string[],
    now: number,
  ): QueueDefaults {
    this.tables.create();
    const { sql } = this.host.storage;
    const version = (this.row()?.version ?? 0) + 1;
    const texts = { config: JSON.stringify(config), limit_overrides: JSON.stringify(overrides) };
    put(sql, 'queue_defaults', { id: 1, version, ...texts, untold: JSON.stringify(queues) });
    if (queues.length > 0) this.clock.arm(now + STANDBY_MS, now);
    return { version, config, overrides };
  }

  /** How many queues have not confirmed the present settings. */
  get untold(): number {
    return this.untoldNames().length;
  }

  private untoldNames(): string[] {
    const row = this.row();
    return row ? (JSON.parse(row.untold) as string[]) : [];
  }

  /** Tells queues that have not heard. One row written. Rejects when all that are left could not be told. */
  private async tellSome(): Promise<void> {
    const defaults = this.read();
    if (!defaults) return;
    const round = this.untoldNames().filter((queue) => !this.failed.has(queue));
    const told = new Set<string>();
    await inParallel(round.slice(0, QUEUES_PER_LETTER), (queue) =>
      this.tell(queue, defaults).then(
        () => told.add(queue),
        (error) => this.failed.set(queue, error),
      ),
    );
    this.confirm(defaults.version, told);
    if (this.untoldNames().some((queue) => !this.failed.has(queue))) return;
    const [error] = this.failed.values();
    this.failed.clear();
    if (error !== undefined) throw error;
  }

  /** These queues have heard of this version; what they heard means nothing once there is a later one. */
  private confirm(version: number, told: ReadonlySet<string>): void {
    if (told.size === 0) return;
    const left = JSON.stringify(this.untoldNames().filter((queue) => !told.has(queue)));
    rows(this.host.storage.sql, 'UPDATE queue_defaults SET untold = ? WHERE version = ?', left, version);
  }

  /** Tells the queues that have not heard, and waits for that. The alarm tries again what fails. Never rejects. */
  async spread(): Promise<void> {
    if (this.untold === 0) return;
    this.courier.startAnew();
    await this.courier.idle();
  }

  /** The alarm has fired. Never rejects. */
  async alarm(): Promise<void> {
    this.clock.fired(this.host.now());
    await this.spread();
    this.watch();
  }

  /** Arms the alarm for what must still be told; it may have been lost. */
  watch(): void {
    const now = this.host.now();
    const next = this.courier.due(now);
    if (next !== undefined) this.clock.arm(next, now);
  }

  /** The object is being emptied. */
  close(): void {
    this.courier.close();
  }

  private row(): Row | undefined {
    if (!this.tables.exist()) return undefined;
    const all = 'SELECT version, config, limit_overrides, untold FROM queue_defaults';
    return rows<Row>(this.host.storage.sql, all)[0];
  }
}
