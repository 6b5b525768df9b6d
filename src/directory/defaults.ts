/**
 * What holds in all queues, and getting it there: settings of every queue which says nothing else (`_default`), and what
 * operators put in the place of the limits of keys, whether a queue has met the key or not.
 *
 * A change is written together with a letter to each queue there is, in the place of one that has not arrived. A letter says
 * only that there is something new: what is sent is what holds by then. A queue that is created later gets the settings with
 * its number. Versions rise: what comes late to a queue changes nothing there.
 */
import { AlarmClock } from '../durable/alarm-clock';
import { Courier, type CourierHost, posted } from '../durable/courier';
import { Outbox } from '../durable/outbox';
import type { Schema } from '../durable/schema';
import { put, rows } from '../durable/sql';
import { holding, type LimitOverrides, withOverride } from '../job/limits/overrides';
import type { LimitOverride } from '../job/limits/policy';
import { changed, type QueueConfig, type QueueDefaults, type SettingsChange } from '../job/settings';

/** The kind of these letters. Their address is the queue's name, their data the version that was the latest. */
const SETTINGS = 'settings';

/** Queues told in one event; a Durable Object may call others only so often in one. */
const SENDS_PER_EVENT = 400;

/** Tells one queue. Rejects when that was not possible. */
export type Tell = (queue: string, defaults: QueueDefaults) => Promise<void>;

type Row = { version: number; config: string; limit_overrides: string };

/** What the settings of all queues need of the object around them. */
export interface DefaultsHost extends Pick<CourierHost, 'now' | 'keepAlive'> {
  readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync' | 'setAlarm' | 'deleteAlarm'>;
}

export class DefaultsStore {
  private readonly clock: AlarmClock;
  private readonly outbox: Outbox;
  private readonly courier: Courier;

  constructor(
    private readonly host: DefaultsHost,
    private readonly tables: Schema,
    tell: Tell,
  ) {
    const { storage, now } = host;
    // Which alarm is stored need not be known: the first that is armed here is the earliest there has to be.
    this.clock = new AlarmClock(storage, null);
    const wakeAt = (at: number) => this.clock.arm(at, now());
    this.outbox = new Outbox(storage.sql, wakeAt);
    const letters = posted(this.outbox, async (operation) => this.transact(() => operation(now())), {
      kind: SETTINGS,
      send: async (queue, _, taken) => {
        const defaults = this.read();
        if (defaults) await tell(queue, defaults);
        await taken(() => undefined);
      },
    });
    const around = { now, wakeAt, keepAlive: (promise: Promise<unknown>) => host.keepAlive(promise) };
    this.courier = new Courier([letters], around, { sends: SENDS_PER_EVENT });
  }

  /** The settings; undefined when nobody has ever made any. */
  read(): QueueDefaults | undefined {
    const row = this.row();
    return row && { version: row.version, config: JSON.parse(row.config), overrides: JSON.parse(row.limit_overrides) };
  }

  /**
   * Merges a change, of which all of `queues` must hear.
   * @param now epoch ms
   */
  change(change: SettingsChange, queues: readonly string[], now: number): QueueDefaults {
    return this.replace(changed(this.read()?.config ?? {}, change), this.overrides(now), queues, now);
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

  /** One row written, and one for each queue; the alarm stands by. */
  private replace(
    config: QueueConfig,
    overrides: LimitOverrides,
    queues: readonly string[],
    now: number,
  ): QueueDefaults {
    this.tables.create();
    return this.transact(() => {
      const version = (this.row()?.version ?? 0) + 1;
      const row = { id: 1, version, config: JSON.stringify(config), limit_overrides: JSON.stringify(overrides) };
      put(this.host.storage.sql, 'queue_defaults', row);
      for (const queue of queues) this.outbox.post(SETTINGS, queue, String(version), now);
      return { version, config, overrides };
    });
  }

  /** How many queues have not confirmed the present settings. */
  get untold(): number {
    return this.tables.exist() ? this.outbox.count(SETTINGS) : 0;
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
    const next = this.untold === 0 ? undefined : this.courier.due(now);
    if (next !== undefined) this.clock.arm(next, now);
  }

  /** The object is being emptied. */
  close(): void {
    this.courier.close();
  }

  private transact<T>(run: () => T): T {
    const undo = this.outbox.mark();
    const armed = this.clock.armedAt;
    try {
      return this.host.storage.transactionSync(run);
    } catch (error) {
      undo();
      this.clock.restore(armed);
      throw error;
    }
  }

  private row(): Row | undefined {
    if (!this.tables.exist()) return undefined;
    return rows<Row>(this.host.storage.sql, 'SELECT version, config, limit_overrides FROM queue_defaults')[0];
  }
}
