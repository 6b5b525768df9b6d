/** The settings and mode of a queue, the deployment's settings for all queues, and what handlers announce. */
import type { TokenSettings } from '../../access/token';
import { writeMeta } from '../../durable/sql';
import { MAX_DURATION_MS } from '../../job/duration';
import { defined } from '../../job/envelope/fields';
import type { GroupOverrides } from '../../job/group';
import { GroupRules } from '../../job/group-rules';
import { holdingMaintenance, type Maintenance, shutUntil } from '../../job/maintenance';
import type { AnnouncedType, LowerLayers, RetryInput } from '../../job/record';
import { boundOf, type End, keepsDiscarded } from '../../job/retention';
import type { RetryPolicy } from '../../job/retry/policy';
import { type RetryLayers, resolveRetry } from '../../job/retry/resolve';
import type { RemovalRequest } from '../../rpc/operations';
import { below, DEFAULTS, keptIn, over, type QueueConfig, type QueueDefaults } from '../../settings';
import { Overrides } from './limits/overrides';
import { restsUntil } from './shutdown';

interface OwnRetry {
  retry?: RetryInput;
  max_attempts?: number;
}

const MAX_TYPES = 1_000;

/** The layers of a type, and the policy of its jobs without options. */
interface RetryOfType {
  readonly announced: AnnouncedType | undefined;
  readonly queue: RetryInput | undefined;
  readonly layers: LowerLayers;
  policy?: RetryPolicy;
}

/** @param announced by the handler about the type @param queue the queue's default */
function retryOfType(announced: AnnouncedType | undefined, queue: RetryInput | undefined): RetryOfType {
  const { retry, max_attempts } = announced ?? {};
  const jobType = (retry || max_attempts !== undefined) && { ...retry, ...defined({ max_attempts }) };
  return { announced, queue, layers: { ...(jobType && { job_type: jobType }), ...(queue && { queue }) } };
}

export interface Variables {
  readonly retryVariables: Record<string, string | undefined>;
  /** The bound of the storage of each queue, in bytes. */
  readonly maxStorageBytes?: number;
  /** What signs tokens; absent: it cannot be read. */
  readonly tokens?: TokenSettings;
}

export const GROUP_OVERRIDES = 'groups';

export class Configuration {
  paused = false;
  pausedChangedAt = 0;
  draining = false;
  removal?: Removal;
  own: QueueConfig = {};
  /** The deployment's settings for all queues, as last received. */
  defaults: QueueDefaults | undefined;
  /** The settings in force: the queue's own over those of the deployment. */
  settings: QueueConfig = {};
  private kept = keptIn({});
  /** What they say of groups, with the overrides of operators. Absent: nothing. */
  groups: GroupRules | undefined;
  groupOverrides: GroupOverrides = {};
  /** What operators set for keys in all queues. */
  readonly overrides = new Overrides();
  readonly announced: AnnouncedTypes;
  private readonly retries = new Map<string, RetryOfType>();

  /** @param createdAt epoch ms */
  constructor(
    sql: SqlStorage,
    readonly createdAt: number,
    readonly variables: Variables,
  ) {
    this.announced = new AnnouncedTypes(sql);
  }

  load(meta: ReadonlyMap<string, unknown>): void {
    const pause = meta.get('paused') as { paused: boolean; at: number; draining?: boolean } | undefined;
    const removal = meta.get('removal') as Removal | undefined;
    if (removal) this.removal = removal;
    else delete this.removal;
    this.paused = (pause?.paused ?? false) || removal !== undefined;
    this.draining = pause?.draining ?? false;
    this.pausedChangedAt = pause?.at ?? this.createdAt;
    this.groupOverrides = (meta.get(GROUP_OVERRIDES) as GroupOverrides | undefined) ?? {};
    this.set((meta.get('config') as QueueConfig | undefined) ?? {}, meta.get('defaults') as QueueDefaults | undefined);
    this.announced.load(meta);
  }

  set(own: QueueConfig, defaults: QueueDefaults | undefined): void {
    this.own = own;
    this.defaults = defaults;
    this.settings = over(own, below(defaults));
    this.kept = keptIn(this.settings);
    this.combineGroups();
    this.overrides.set(defaults);
  }

  setGroups(overrides: GroupOverrides): void {
    this.groupOverrides = overrides;
    this.combineGroups();
  }

  private combineGroups(): void {
    const { groups } = this.settings;
    this.groups = groups && new GroupRules(groups, this.groupOverrides);
  }

  /** Until when maintenance, or the end of the process, shuts the queue, epoch ms; may be past, or an infinity. */
  get shutUntil(): number {
    return Math.max(shutUntil(this.defaults?.maintenance), restsUntil());
  }

  maintenance(now: number): Maintenance | undefined {
    return holdingMaintenance(this.defaults?.maintenance, now);
  }

  /** Does the queue hand out nothing at all, because it is paused or the deployment is in maintenance? */
  isClosed(now: number): boolean {
    return this.paused || now < this.shutUntil;
  }

  /** The retry layers between a job of this type and the deployment variables: one object while they are the same. */
  layersFor(type: string): LowerLayers {
    return this.retryOf(type).layers;
  }

  private retryOf(type: string): RetryOfType {
    const known = this.retries.get(type);
    const announced = this.announced.of(type);
    const queue = this.settings.default_retry;
    if (known && known.announced === announced && known.queue === queue) return known;
    if (this.retries.size >= MAX_TYPES) this.retries.clear();
    const retry = retryOfType(announced, queue);
    this.retries.set(type, retry);
    return retry;
  }

  retryLayers(type: string, job: OwnRetry): RetryLayers {
    const own = job.max_attempts === undefined ? job.retry : { ...job.retry, max_attempts: job.max_attempts };
    return { variables: this.variables.retryVariables, ...this.layersFor(type), ...(own && { job: own }) };
  }

  policyFor(type: string, job: OwnRetry): Readonly<RetryPolicy> {
    const resolve = () => resolveRetry(this.retryLayers(type, job));
    if (job.retry || job.max_attempts !== undefined) return resolve();
    const retry = this.retryOf(type);
    retry.policy ??= resolve();
    return retry.policy;
  }

  /** Dead letters that are kept at most, beside those that are kept for ever. */
  get maxDeadLetters(): number {
    return this.kept.max_count;
  }

  /** Retention of a job without one of its own, ms, or Infinity. */
  retentionMs(end: End): number {
    return boundOf(this.kept[end === 'dead_letter' ? 'max_age' : end]);
  }

  /** Retention of this job without one of its own, ms, or Infinity. */
  keptFor(type: string, job: OwnRetry, end: End): number {
    return this.keptByPreset(type, job, end) ?? this.retentionMs(end);
  }

  /** Retention of a discarded job, where it or its type has a preset that keeps it and no setting is shorter, ms. */
  keptByPreset(type: string, { retry: job }: OwnRetry, end: End): number | undefined {
    if (end === 'completed' || end === 'cancelled') return undefined;
    const { retention, dead_letter } = this.settings;
    const setting = end === 'dead_letter' ? dead_letter?.max_age : retention?.discarded;
    if (setting !== undefined || !keepsDiscarded({ ...this.layersFor(type), job })) return undefined;
    // Their number is bounded if a setting bounds it.
    return end === 'dead_letter' && dead_letter?.max_count !== undefined ? MAX_DURATION_MS : Number.POSITIVE_INFINITY;
  }

  get maxStorageBytes(): number {
    return this.settings.max_storage_bytes ?? this.variables.maxStorageBytes ?? DEFAULTS.maxStorageBytes;
  }
}

/** Remembered types of workers that pull, and their characters in all; the oldest are dropped first. */
const MAX_PULLED = 1_000;
const MAX_PULLED_CHARS = 256 * 1024;

/** Minimum interval between changes when workers contradict each other, ms: each change is a row. */
const CHANGE_EVERY_MS = 10_000;

/** What handler Workers, and workers that pull, announce about job types. */
class AnnouncedTypes {
  pushed: ReadonlyMap<string, AnnouncedType> = new Map();
  private pulled: ReadonlyMap<string, AnnouncedType> = new Map();
  private changedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly sql: SqlStorage) {}

  load(meta: ReadonlyMap<string, unknown>): void {
    this.pushed = byType((meta.get('announced') ?? []) as AnnouncedType[]);
    this.pulled = byType((meta.get('announced_pulled') ?? []) as AnnouncedType[]);
  }

  *[Symbol.iterator](): Iterator<AnnouncedType> {
    yield* this.pushed.values();
    yield* this.pulled.values();
  }

  of(type: string): AnnouncedType | undefined {
    const { pushed, pulled } = this;
    return pushed.get(type) ?? pushed.get('*') ?? pulled.get(type) ?? pulled.get('*');
  }

  setPushed(types: ReadonlyMap<string, AnnouncedType>): void {
    const before = JSON.stringify([...this.pushed.values()]);
    this.pushed = types;
    const after = [...types.values()];
    if (JSON.stringify(after) !== before) writeMeta(this.sql, 'announced', after);
  }

  /**
   * A pull worker asks for jobs; its settings are kept for later. @param types absent: any
   * @param settings by type; a type without any uses those of the queue
   */
  setPulled(types: readonly string[] | undefined, settings: readonly AnnouncedType[], now: number): void {
    // What is taken by the chunk is each worker's own affair.
    const entries = byType(settings.map(({ batch: _, ...entry }) => entry));
    const catchAll = entries.get('*');
    const next = (type: string): AnnouncedType | undefined => {
      const entry = entries.get(type);
      // A type without settings still gets an entry, so that those of a catch-all do not apply to it.
      return entry && (hasSettings(entry) || (catchAll && hasSettings(catchAll))) ? entry : undefined;
    };
    const changed = [...(types ?? entries.keys())].filter((type) => !isSame(next(type), this.pulled.get(type)));
    if (changed.length === 0 || Math.abs(now - this.changedAt) < CHANGE_EVERY_MS) return;
    const pulled = new Map(this.pulled);
    for (const type of changed) {
      const entry = next(type);
      pulled.delete(type);
      if (entry) pulled.set(type, entry);
    }
    let chars = JSON.stringify([...pulled.values()]).length;
    for (const [type, entry] of pulled) {
      if (pulled.size <= MAX_PULLED && chars <= MAX_PULLED_CHARS) break;
      chars -= JSON.stringify(entry).length + 1;
      pulled.delete(type);
    }
    writeMeta(this.sql, 'announced_pulled', [...pulled.values()]);
    this.pulled = pulled;
    this.changedAt = now;
  }
}

const byType = (entries: readonly AnnouncedType[]) => new Map(entries.map((entry) => [entry.type, entry]));

const hasSettings = ({ retry, max_attempts }: AnnouncedType) => (retry ?? max_attempts) !== undefined;

/** Both are read from JSON by the same reader. */
const isSame = (one: AnnouncedType | undefined, other: AnnouncedType | undefined) =>
  one === other || JSON.stringify(one) === JSON.stringify(other);

/** The deletion of a queue as it is stored: a fact of `meta`. */
export interface Removal extends RemovalRequest {
  /** Epoch ms. */
  at: number;
  jobs_affected: number;
  /** Steps of moving so far. */
  steps?: number;
  moving?: Moving;
}

export interface Moving {
  /** Names the step for the target. */
  name: string;
  keys: number[];
  /** How many of them wait to be activated. */
  pending: number[];
}
