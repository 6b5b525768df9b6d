/** A target as one queue sees it: is it worth calling, what does it take, and how are jobs handed to it? */
import { type Announcement, plainAnnouncement } from '../../../dispatch/announcement';
import type { Payload, TargetConfig } from '../../../dispatch/config';
import { TargetHealth } from '../../../dispatch/health';
import { MAX_CONNECTIONS } from '../../../dispatch/remote';
import { isPausedUntil, isWithin } from '../../../durable/backoff';
import type { ChunkSettings } from '../../../job/chunk';
import { defined } from '../../../job/envelope/fields';
import type { AnnouncedType, JobBody } from '../../../job/record';
import type { TargetView } from '../../../rpc/targets';
import { DEFAULTS } from '../../../settings';
import { chunkOf, slotsOf } from '../../store/active';
import type { Configured, Stored } from '../../store/parts';
import type { Scan } from '../../store/scan';

class DeferredEntries {
  /** The longest waiting ones first. */
  readonly entries = new Set<string>();

  /** @param target id of the target that announced them */
  constructor(private readonly target: string) {}

  /** From here on its jobs are found by its own cursor. @param scan the target's cursor, which has passed none yet */
  add(q: Stored, entry: string, scan: Scan): void {
    this.entries.add(entry);
    this.scanOf(q, entry).copy(scan);
  }

  scanOf(q: Stored, entry: string): Scan {
    return q.store.cursors.ofTarget(this.nameOf(entry));
  }

  /** No job of it is left that the target's cursor has passed. */
  remove(q: Stored, entry: string): void {
    this.entries.delete(entry);
    q.store.cursors.push.delete(this.nameOf(entry));
  }

  /** The announcement no longer holds: the target's cursor starts over. */
  clear(q: Stored): void {
    if (this.entries.size === 0) return;
    for (const entry of this.entries) this.remove(q, entry);
    q.store.cursors.ofTarget(this.target).reset(q.store.leases.head);
  }

  private nameOf(entry: string): string {
    return `${this.target} ${entry}`;
  }
}

/** Interval to the next request for an announcement that failed, or that answers of its Worker do not name, ms. */
const ASK_AGAIN_MS = 60_000;
/** While a deploy is under way two versions may answer in turns: minimum interval between requests to them, ms. */
const ASK_OUTDATED_MS = 10_000;
const MAX_TYPES = 1_000;
const MAX_TIMEOUT_MS = 900_000;

export interface Bound {
  /** `solo`: a job that may have killed its handler runs, and nothing may run with it. */
  by: 'solo' | 'queue' | 'target';
  running: number;
  max: number;
}

/** How many more calls to URLs the platform would not delay. */
export const connectionsLeft = (targets: readonly PushTarget[]): number =>
  targets.reduce((left, { config, openCalls }) => left - (config.isRemote ? openCalls : 0), MAX_CONNECTIONS);

export class PushTarget {
  readonly health: TargetHealth;
  private readonly pace = new Pace();
  /** Types whose concurrency was used up. */
  readonly deferred: DeferredEntries;
  asking = false;
  /** Jobs of a type that it did not announce wait until it may be asked again. */
  isAwaited = false;
  /** Entries whose handlers have asked for a live connection. */
  private readonly askedToTalk = new Set<string>();
  openCalls = 0;
  private announcement: Announcement | undefined;
  private announcesChunks = false;
  private askedAt = Number.NEGATIVE_INFINITY;
  private askAgainAt = Number.NEGATIVE_INFINITY;
  /** Its last answer named another announcement. */
  private outdated = false;
  /** Bytes to expect for each job in the answer to a call. */
  expectedAnswer = 0;

  /** @param longestPauseMs limit of the target's pause; absent: as in production */
  constructor(
    readonly config: TargetConfig,
    private readonly longestPauseMs?: number,
  ) {
    this.health = new TargetHealth(longestPauseMs);
    this.deferred = new DeferredEntries(config.id);
    if (config.isRemote) this.announcement = plainAnnouncement(config);
  }

  private pause(ms: number): number {
    return Math.min(ms, this.longestPauseMs ?? ms);
  }

  /** When it was last asked for its announcement, epoch ms; undefined: never, or without an answer. */
  get knownSince(): number | undefined {
    return this.isCertain && !this.config.isRemote ? this.askedAt : undefined;
  }

  /** When it may be asked again, if not now; epoch ms. */
  asksAgainAt(now: number): number | undefined {
    return isPausedUntil(this.askAgainAt, now, ASK_AGAIN_MS) ? this.askAgainAt : undefined;
  }

  /** Names the target in leases, cursors and the list of stopped targets. */
  get id(): string {
    return this.config.id;
  }

  /** Worker id under which the target holds its leases. */
  get workerId(): string {
    return `push_${this.config.name.toLowerCase()}`;
  }

  get isKnown(): boolean {
    return this.announcement !== undefined;
  }

  /** Does what is known about the target come from itself? */
  get isCertain(): boolean {
    return this.announcement?.provisional === false;
  }

  get types(): readonly AnnouncedType[] {
    return this.announcement?.types ?? [];
  }

  get listsTypes(): boolean {
    return Array.isArray(this.announcement?.types);
  }

  get payload(): Payload {
    return this.announcement?.payload ?? 'envelope';
  }

  get recalls(): boolean {
    return this.announcement?.recalls === true;
  }

  get batchSize(): number {
    return this.payload === 'batch' ? this.config.batchSize : 1;
  }

  /** Is it time to ask for its announcement, once there is a job for it? */
  shouldAsk(now: number): boolean {
    if (!this.mayAsk(now)) return false;
    const hasVersion = !this.listsTypes || this.announcement?.version !== undefined;
    return !this.isCertain || (!hasVersion && !isWithin(this.askedAt, this.pause(ASK_AGAIN_MS), now));
  }

  /** Has it been deployed again since it was asked? Then it is asked at once. */
  isOutdated(now: number): boolean {
    return this.outdated && this.mayAsk(now) && !isWithin(this.askedAt, this.pause(ASK_OUTDATED_MS), now);
  }

  /**
   * A call with jobs of these types is over.
   * @param result how many jobs it had, its time in ms, the bytes of its answer, and the version that the answer names
   */
  called(types: ReadonlySet<string>, result: { jobs: number; tookMs: number; bytes: number; version?: string }): void {
    this.pace.note(this.entriesOf(types), result.tookMs);
    this.expectedAnswer = Math.max(result.bytes / result.jobs, this.expectedAnswer * 0.9);
    if (result.version !== undefined && this.isCertain) {
      this.outdated = result.version !== this.announcement?.version;
    }
  }

  /**
   * Should a call with jobs of these types stay open, so that each can be stopped, and its handler can send messages?
   */
  staysOpen(types: ReadonlySet<string>, timeoutMs: number): boolean {
    if (!this.canTalk) return false;
    const entries = this.entriesOf(types);
    const talks = [...entries].some((entry) => this.announcement?.talking.has(entry) || this.askedToTalk.has(entry));
    return talks || this.pace.staysOpen(entries, timeoutMs);
  }

  /** Can a call to it have a live connection? */
  get canTalk(): boolean {
    return this.announcement?.control === true && this.payload === 'batch';
  }

  /** A handler of this type needs a live connection, though its announcement does not say so. */
  keepOpen(type: string): void {
    this.askedToTalk.add(this.entryOf(type));
  }

  private entriesOf(types: ReadonlySet<string>): Set<string> {
    return new Set([...types].map((type) => this.entryOf(type)));
  }

  /** May it be asked about a type it did not list? */
  mayAsk(now: number): boolean {
    return !this.asking && this.asksAgainAt(now) === undefined;
  }

  /** Was it asked at or after `moment`, and answered? A time noted before the clock was set back does not count. */
  wasAskedSince(moment: number, now: number): boolean {
    return this.askedAt >= moment && this.askedAt <= now;
  }

  /** It answered. Answers when to ask again, if this was not a proper answer. */
  learn(announcement: Announcement, askedAt: number, now: number): number | undefined {
    if (!announcement.provisional) {
      this.announcement = announcement;
      this.announcesChunks = this.types.some(({ batch }) => batch !== undefined);
      this.askedAt = askedAt;
      this.outdated = false;
      this.isAwaited = false;
      this.pace.forget();
      this.askedToTalk.clear();
      return undefined;
    }
    this.askAgainAt = now + this.pause(ASK_AGAIN_MS);
    // Its earlier announcement holds until it answers again.
    if (this.isCertain) return undefined;
    this.announcement ??= announcement;
    return this.askAgainAt;
  }

  forget(): void {
    this.announcement = undefined;
  }

  get takesChunks(): boolean {
    return this.payload === 'batch' && (this.config.chunk !== undefined || this.announcesChunks);
  }

  /** All that it announces of chunks, as a text. */
  get chunking(): string {
    if (!this.takesChunks) return '';
    return JSON.stringify(this.types.map(({ type, batch }) => [type, batch]));
  }

  /** How jobs of a type are gathered for it; undefined: they are not. */
  chunkFor(type: string): ChunkSettings | undefined {
    if (!this.takesChunks) return undefined;
    const announced = this.announced(type);
    return this.config.chunk ?? (announced === 'unknown' ? undefined : announced?.batch);
  }

  /** What it announced about a type: its own entry, else that of the catch-all; undefined when it lists none. */
  announced(type: string): AnnouncedType | 'unknown' | undefined {
    const types = this.announcement?.types;
    if (!types) return undefined;
    return types.find((entry) => entry.type === type) ?? types.find((entry) => entry.type === '*') ?? 'unknown';
  }

  /** Execution limit of a job here, ms: its own, else the type's, else the queue's, else the target's. */
  timeoutFor(q: Configured, body: Pick<JobBody, 'type' | 'timeout_ms'>): number {
    const announced = this.announced(body.type);
    const ofType = announced === 'unknown' ? undefined : announced?.timeout_ms;
    const limit = body.timeout_ms ?? ofType ?? q.config.settings.default_timeout_ms ?? this.config.timeoutMs;
    return Math.min(limit, MAX_TIMEOUT_MS);
  }

  /** Does the concurrency announced for the type leave room? Never for a type that was not announced. */
  takes(type: string, running: ReadonlyMap<string, number>): boolean {
    if (this.announced(type) === 'unknown') return false;
    const bound = this.boundOf(type, running);
    return bound === undefined || bound.running < bound.max;
  }

  /** The concurrency announced for a type, and how many of it run; undefined when it has none. */
  boundOf(type: string, running: ReadonlyMap<string, number>): (Omit<Bound, 'by'> & { entry: string }) | undefined {
    const announced = this.announced(type);
    if (announced === 'unknown' || announced?.concurrency === undefined) return undefined;
    return { entry: announced.type, running: running.get(announced.type) ?? 0, max: announced.concurrency };
  }

  count(type: string, running: Map<string, number>): void {
    const entry = this.entryOf(type);
    running.set(entry, (running.get(entry) ?? 0) + 1);
  }

  /** The announced entry that bounds a type: the type itself, or `*`. */
  entryOf(type: string): string {
    const announced = this.announced(type);
    return announced === undefined || announced === 'unknown' ? type : announced.type;
  }

  /** Jobs running here, by the announced entry that bounds them (a catch-all bounds all its types together). */
  runningByEntry(q: Stored): Map<string, number> {
    const counts = new Map<string, number>();
    const chunks = new Set<string>();
    for (const active of q.store.leases.pushed) {
      const chunk = chunkOf(active);
      if (active.target !== this.id || (chunk !== undefined && chunks.has(chunk))) continue;
      if (chunk !== undefined) chunks.add(chunk);
      this.count(active.type, counts);
    }
    return counts;
  }

  isBusy(q: Stored): boolean {
    for (const active of q.store.leases.pushed) if (active.target === this.id) return true;
    return false;
  }

  room(q: Stored & Configured): number {
    return Math.min(...this.bounds(q).map(({ running, max }) => max - running));
  }

  /** What bounds the jobs that run here, whatever their types. */
  bounds(q: Stored & Configured): Bound[] {
    const pushed = [...q.store.leases.pushed];
    const max = q.config.settings.concurrency ?? DEFAULTS.concurrency;
    const bounds: Bound[] = [{ by: 'queue', running: slotsOf(pushed), max }];
    if (pushed.some(({ target, solo }) => solo && target === this.id)) bounds.push({ by: 'solo', running: 1, max: 1 });
    const { maxConcurrency } = this.config;
    if (maxConcurrency !== undefined) {
      const running = slotsOf(pushed.filter(({ target }) => target === this.id));
      bounds.push({ by: 'target', running, max: maxConcurrency });
    }
    return bounds;
  }
}

export function viewOf(target: PushTarget, now: number): TargetView {
  const { health, config } = target;
  const { trouble } = health;
  return {
    name: config.name,
    id: target.id,
    state: trouble ? (health.isStopped ? 'stopped' : 'paused') : 'up',
    ...(trouble && { since: trouble.since, last_tried_at: trouble.triedAt, last_error: trouble.error }),
    ...defined({ next_try_at: health.resumesAt(now), asked_at: target.knownSince }),
    ...(target.listsTypes && { types: target.types.slice(0, MAX_TYPES).map(({ type }) => type) }),
  };
}

/** A call that took no longer than this was quick, ms. */
const QUICK_MS = 500;
/** This many quick calls in a row make a type quick; one slow call ends that. */
const QUICK_CALLS = 8;
/** A job that may run longer than this (the usual limit) can always be stopped, ms. */
const USUAL_TIMEOUT_MS = 30_000;

/**
 * Which job types end quickly. A call that stays open, so that its jobs can be stopped one by one, costs a tenth more
 * than other calls. Short jobs are not worth it.
 */
export class Pace {
  /** Quick calls in a row, by the announced entry that stands for a type. */
  private readonly quick = new Map<string, number>();

  note(entries: ReadonlySet<string>, tookMs: number): void {
    for (const entry of entries) {
      if (tookMs > QUICK_MS) this.quick.delete(entry);
      else this.quick.set(entry, Math.min(QUICK_CALLS, (this.quick.get(entry) ?? 0) + 1));
    }
  }

  /** Should a call with jobs of these entries stay open? @param timeoutMs the execution limit of its jobs */
  staysOpen(entries: ReadonlySet<string>, timeoutMs: number): boolean {
    if (timeoutMs > USUAL_TIMEOUT_MS) return true;
    return [...entries].some((entry) => (this.quick.get(entry) ?? 0) < QUICK_CALLS);
  }

  forget(): void {
    this.quick.clear();
  }
}
