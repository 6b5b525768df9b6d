/**
 * The settings of all queues: defaults, declarations of the code, overrides of key limits. A change is one row, which
 * also records its delivery: queues are notified in the order of routes, a hundred with a message, and those not
 * reached are retried. New queues get the settings with their number. Versions rise, so a late message changes nothing.
 */

import { STANDBY_MS } from '../durable/outbox';
import { derived, type MessageKind } from '../durable/outbox-relay';
import { inParallel } from '../durable/parallel';
import type { Schema } from '../durable/schema';
import { defined } from '../job/envelope/fields';
import { mayNotShorten } from '../job/errors';
import { holding, type LimitOverrides, withOverride } from '../job/limits/overrides';
import type { LimitOverride } from '../job/limits/policy';
import { holdingMaintenance, type Maintenance, type MaintenanceNotice } from '../job/maintenance';
import { own } from '../job/own';
import type { SchemaStamp } from '../job/record';
import type { StoredDeclaration } from '../rpc/deployment';
import { nextStamp } from '../schemas/stamp';
import { changed, keepsLess, type QueueConfig, type QueueDefaults, type SettingsChange } from '../settings';

const DECLARED = 'declared';

/** The fact with the stamp of the last change to the schemas. */
const SCHEMAS = 'schemas';

const MAINTENANCE = 'maintenance';

/** Queues notified with one outbox message. */
const QUEUES_PER_MESSAGE = 100;

/** Above every route: all queues have had their turn. */
const ALL_ROUTES = 2 ** 32 - 1;

/** Notifies one queue. Rejects when that was not possible. */
export type Tell = (queue: string, defaults: QueueDefaults) => Promise<void>;

type Row = { version: number; config: string; limit_overrides: string; told_to: number };

interface Round {
  names: string[];
  /** They are all queues up to this route. Absent: they were noted because they could not be reached before. */
  upTo?: number;
}

export interface DefaultsHost {
  /** Something must be sent at this moment (epoch ms) at the latest. */
  wakeAt(at: number): void;
  /** What else a queue must know. Absent: nothing. */
  alsoFor?(queue: string): Pick<QueueDefaults, 'webhooks' | 'alerts'>;
  /** The size limit of a queue without a setting. Absent: the built-in one. */
  readonly maxStorageBytes?: number | undefined;
}

export class DefaultsStore {
  /** The messages to the queues for the outbox relay. */
  readonly messages: MessageKind<void>;
  /** Of the queues that could not be reached, those up to this name have had another try. */
  private triedTo = '';

  constructor(
    private readonly host: DefaultsHost,
    private readonly tables: Schema,
    private readonly tell: Tell,
  ) {
    this.messages = derived({
      kind: 'settings of',
      open: () => (this.isTold() ? [] : ['all queues']),
      deliver: () => this.tellSome(),
    });
  }

  /** The settings; undefined when none were ever made. */
  read(): QueueDefaults | undefined {
    const row = this.row();
    return row && { version: row.version, config: JSON.parse(row.config), overrides: JSON.parse(row.limit_overrides) };
  }

  /** The settings for one queue, with what the code declares for it. */
  for(queue: string): QueueDefaults | undefined {
    const said = this.read();
    if (!said) return undefined;
    const { queues = {}, limits = {} } = this.declared() ?? {};
    return defined({
      ...said,
      declared: own(queues, queue),
      limits: Object.keys(limits).length > 0 ? limits : undefined,
      maintenance: this.maintenance(),
      ...this.host.alsoFor?.(queue),
      schemas: this.schemaStamp(),
    });
  }

  /** Names the state of the schemas of jobs; undefined: there never were any. */
  schemaStamp(): SchemaStamp | undefined {
    return this.tables.fact(SCHEMAS);
  }

  /** Changes the schemas: with a new stamp, in one transaction. @param now epoch ms @returns the result of `change` */
  changeSchemas<T>(change: () => T, now: number): T {
    return this.tables.transaction(() => {
      const changed = change();
      const line = crypto.getRandomValues(new Uint32Array(1))[0] as number;
      this.tables.writeFact(SCHEMAS, nextStamp(this.schemaStamp(), line));
      this.spreadAnew(now);
      return changed;
    });
  }

  /** The last maintenance that was declared and not ended; it may be over. */
  maintenance(): Maintenance | undefined {
    return this.tables.fact(MAINTENANCE);
  }

  /** Begins, changes or ends (null) maintenance, and notifies all queues. @param now epoch ms */
  declareMaintenance(notice: MaintenanceNotice | null, now: number): void {
    const before = holdingMaintenance(this.maintenance(), now);
    if (!notice && !before) return;
    const maintenance = notice ? { started_at: before?.started_at ?? now, ...notice } : undefined;
    this.tables.transaction(() => {
      this.tables.writeFact(MAINTENANCE, maintenance);
      this.spreadAnew(now);
    });
  }

  /** What the code of the deployment declares; undefined when it never declared anything. */
  declared(): StoredDeclaration | undefined {
    return this.tables.fact(DECLARED);
  }

  /** Stores a new declaration of the code. The queues are notified if settings or limits differ from before. */
  declare(declared: StoredDeclaration, now: number): void {
    const { queues, limits } = this.declared() ?? { queues: {}, limits: {} };
    const isNew =
      JSON.stringify({ queues, limits }) !== JSON.stringify({ queues: declared.queues, limits: declared.limits });
    this.tables.transaction(() => {
      this.tables.writeFact(DECLARED, declared);
      if (isNew) this.spreadAnew(now);
    });
  }

  /**
   * Merges a change, and notifies all queues. @param now epoch ms
   * @param mayPurge false: retentions of existing queues must not get shorter @throws {ApiError} 403
   */
  change(change: SettingsChange, now: number, mayPurge = true): QueueDefaults {
    const before = this.read()?.config ?? {};
    const after = changed(before, change);
    const less = mayPurge || !this.hasQueues() ? undefined : keepsLess(before, after, this.host.maxStorageBytes);
    if (less !== undefined) throw mayNotShorten(less);
    return this.replace(after, this.overrides(now), now);
  }

  /** Operators' overrides of key limits at `now` (epoch ms). */
  overrides(now: number): LimitOverrides {
    return holding(this.read()?.overrides, now);
  }

  /**
   * Overrides a key's limits in all queues, or removes the override (null); ended ones are forgotten. @param now
   * epoch ms
   * @returns whether there was an override @throws {ApiError} 409 when there are too many
   */
  override(key: string, override: LimitOverride | null, now: number): boolean {
    const before = this.overrides(now);
    const present = Object.hasOwn(before, key) ? before[key] : null;
    if (JSON.stringify(present) !== JSON.stringify(override)) {
      this.replace(this.read()?.config ?? {}, withOverride(before, key, override), now);
    }
    return present !== null;
  }

  /** The parts besides the settings have changed: notifies the queues. */
  spreadAnew(now: number): void {
    this.replace(this.read()?.config ?? {}, this.overrides(now), now);
  }

  /** One row written, and one for each queue that had missed the settings before; the alarm is armed. */
  private replace(config: QueueConfig, overrides: LimitOverrides, now: number): QueueDefaults {
    const version = (this.row()?.version ?? 0) + 1;
    const texts = { config: JSON.stringify(config), limit_overrides: JSON.stringify(overrides) };
    const told_to = this.hasQueues() ? -1 : ALL_ROUTES;
    this.tables.transaction(() => {
      this.tables.put('queue_defaults', { id: 1, version, ...texts, told_to });
      this.tables.rows('DELETE FROM untold_queues');
    });
    this.triedTo = '';
    if (!this.isTold()) this.host.wakeAt(now + STANDBY_MS);
    return { version, config, overrides };
  }

  private hasQueues(): boolean {
    return this.tables.rows('SELECT 1 FROM queues LIMIT 1').length > 0;
  }

  /** How many queues have not confirmed the present settings. */
  get untold(): number {
    const row = this.row();
    if (!row || this.isTold()) return 0;
    const count = 'SELECT (SELECT count(*) FROM queues WHERE route > ?) + (SELECT count(*) FROM untold_queues) AS n';
    return this.tables.count(count, row.told_to);
  }

  private isTold(): boolean {
    const row = this.row();
    if (!row) return true;
    return row.told_to >= ALL_ROUTES && this.tables.rows('SELECT 1 FROM untold_queues LIMIT 1').length === 0;
  }

  /** Notifies the next queues. Rejects when it is time for a pause. */
  private async tellSome(): Promise<void> {
    const row = this.row();
    const defaults = this.read();
    if (!row || !defaults) return;
    const round = this.nextRound(row.told_to);
    const failed = new Map<string, unknown>();
    await inParallel(round.names, (queue) =>
      this.tell(queue, this.for(queue) ?? defaults).catch((error) => {
        failed.set(queue, error);
      }),
    );
    // A confirmation means nothing once there is a later version.
    if (this.row()?.version !== defaults.version) return;
    this.tables.transaction(() => this.note(round, failed));
    const wasLast = round.upTo === undefined && round.names.length < QUEUES_PER_MESSAGE;
    if (round.upTo === undefined) this.triedTo = wasLast ? '' : (round.names.at(-1) ?? '');
    const [error] = failed.values();
    if (error !== undefined && (wasLast || failed.size === round.names.length)) throw error;
  }

  private nextRound(toldTo: number): Round {
    if (toldTo < ALL_ROUTES) {
      const next = 'SELECT route, name FROM queues WHERE route > ? ORDER BY route LIMIT ?';
      const queues = this.tables.rows<{ route: number; name: string }>(next, toldTo, QUEUES_PER_MESSAGE);
      const last = queues.length === QUEUES_PER_MESSAGE ? queues.at(-1) : undefined;
      return { names: queues.map(({ name }) => name), upTo: last?.route ?? ALL_ROUTES };
    }
    const again = 'SELECT name FROM untold_queues WHERE name > ? ORDER BY name LIMIT ?';
    return {
      names: this.tables.rows<{ name: string }>(again, this.triedTo, QUEUES_PER_MESSAGE).map(({ name }) => name),
    };
  }

  /** All of these queues have confirmed, except those that failed. */
  private note({ names, upTo }: Round, failed: ReadonlyMap<string, unknown>): void {
    if (upTo === undefined) {
      const reached = JSON.stringify(names.filter((name) => !failed.has(name)));
      this.tables.rows('DELETE FROM untold_queues WHERE name IN (SELECT value FROM json_each(?))', reached);
      return;
    }
    this.tables.rows('UPDATE queue_defaults SET told_to = ?', upTo);
    const untold = JSON.stringify([...failed.keys()]);
    this.tables.rows('INSERT OR IGNORE INTO untold_queues (name) SELECT value FROM json_each(?)', untold);
  }

  private row(): Row | undefined {
    return this.tables.rows<Row>('SELECT version, config, limit_overrides, told_to FROM queue_defaults')[0];
  }
}
