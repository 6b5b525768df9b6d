/**
 * What holds in all queues, and getting it there: settings of every queue which says nothing else (`_default`), and what
 * operators put in the place of the limits of keys, whether a queue has met the key or not.
 *
 * A change is one row, written together with the names of all queues there are: those have not heard of it yet. Each is told
 * until it has confirmed, at once and then by alarm, so a queue that could not be reached, or a directory that died while it
 * told them, delays a change and loses none. A queue that is created later gets the settings with its number. Versions rise:
 * what comes late to a queue changes nothing there.
 */
import { inParallel } from '../durable/parallel';
import type { Schema } from '../durable/schema';
import { holding, type LimitOverrides, withOverride } from '../job/limits/overrides';
import type { LimitOverride } from '../job/limits/policy';
import type { QueueConfig } from '../job/settings';
import { changed, type QueueDefaults, type SettingsChange } from '../job/settings';

/** Queues told in one event; a Durable Object may call others only so often in one. */
const STEP = 400;

/** Queues that could not be told are told again after so long, then after twice as long, and so on up to the longest; ms. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** Tells one queue. Rejects when that was not possible. */
export type Tell = (queue: string, defaults: QueueDefaults) => Promise<void>;

type Row = { version: number; config: string; limit_overrides: string; untold: string };

export class DefaultsStore {
  private spreading: Promise<void> | undefined;
  private pauseMs = FIRST_PAUSE_MS;

  constructor(
    private readonly storage: Pick<DurableObjectStorage, 'sql' | 'setAlarm'>,
    private readonly tables: Schema,
    private readonly tell: Tell,
  ) {}

  /** The settings; undefined when nobody has ever made any. */
  read(): QueueDefaults | undefined {
    const row = this.row();
    return row && { version: row.version, config: JSON.parse(row.config), overrides: JSON.parse(row.limit_overrides) };
  }

  /**
   * Merges a change. The alarm stands by until all of `queues` have heard of it.
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

  /** One row written; the alarm stands by. */
  private replace(
    config: QueueConfig,
    overrides: LimitOverrides,
    queues: readonly string[],
    now: number,
  ): QueueDefaults {
    this.tables.create();
    const version = (this.row()?.version ?? 0) + 1;
    this.storage.sql
      .exec(
        `INSERT OR REPLACE INTO queue_defaults (id, version, config, limit_overrides, untold) VALUES (1, ?, ?, ?, ?)`,
        version,
        JSON.stringify(config),
        JSON.stringify(overrides),
        JSON.stringify(queues),
      )
      .toArray();
    this.pauseMs = FIRST_PAUSE_MS;
    if (queues.length > 0) this.wakeAt(now + FIRST_PAUSE_MS);
    return { version, config, overrides };
  }

  /** Queues that have not confirmed the present settings. */
  untold(): string[] {
    const row = this.row();
    return row ? (JSON.parse(row.untold) as string[]) : [];
  }

  /** Tells the queues that have not heard. Whom that fails with is left to the alarm. Never rejects. */
  spread(now: () => number): Promise<void> {
    this.spreading ??= this.tellAll(now)
      .catch((error) => {
        console.error('tocsin: the settings of all queues could not be spread yet', error);
        this.wakeAt(now() + this.pauseMs);
      })
      .finally(() => {
        this.spreading = undefined;
      });
    return this.spreading;
  }

  /** An alarm may have been lost: whoever has not been told is told soon. */
  watch(now: number): void {
    if (this.untold().length > 0) this.wakeAt(now + FIRST_PAUSE_MS);
  }

  private async tellAll(now: () => number): Promise<void> {
    const failed = new Set<string>();
    let left = STEP;
    for (;;) {
      // Read anew each time: the settings may have been changed once more in the meantime.
      const defaults = this.read();
      const queues = this.untold().filter((queue) => !failed.has(queue));
      if (!defaults || queues.length === 0 || left === 0) break;
      const round = queues.slice(0, left);
      left -= round.length;
      const told = new Set<string>();
      await inParallel(round, (queue) =>
        this.tell(queue, defaults).then(
          () => told.add(queue),
          (error) => {
            failed.add(queue);
            console.error(`tocsin: queue ${queue} could not be told of settings yet`, error);
          },
        ),
      );
      this.confirm(defaults.version, told);
    }
    if (failed.size > 0) {
      this.wakeAt(now() + this.pauseMs);
      this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
    } else if (this.untold().length > 0) {
      this.wakeAt(now() + 1);
    }
  }

  /** These queues have heard of this version; what they heard means nothing once there is a later one. */
  private confirm(version: number, told: ReadonlySet<string>): void {
    if (told.size === 0) return;
    this.storage.sql
      .exec(
        'UPDATE queue_defaults SET untold = ? WHERE version = ?',
        JSON.stringify(this.untold().filter((queue) => !told.has(queue))),
        version,
      )
      .toArray();
  }

  private wakeAt(at: number): void {
    void this.storage.setAlarm(at);
  }

  private row(): Row | undefined {
    if (!this.tables.exist()) return undefined;
    return this.storage.sql
      .exec<Row>('SELECT version, config, limit_overrides, untold FROM queue_defaults')
      .toArray()[0];
  }
}
