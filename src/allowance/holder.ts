/**
 * What a queue holds of a key's allowance, in memory. Pure. An object that lost its memory has no starts left; its
 * desk reports its slots ({@link Desk} says when each part ends).
 *
 * Unknown counts as no room. An answer holds for {@link TERM_MS}, because other queues change the limits; it is
 * renewed in the second half of the term, so that no job waits for it.
 */
import type { Limits } from '../job/limits/policy';
import type { DeclaredLimits, KeySettings, LeaseAnswer, LeaseRequest } from '../rpc/allowances';
import { isStopped, limitsInForce, spacingOf, TERM_MS } from './rules';

/** A recall that the desk does not repeat is over after this, ms. */
const RECALL_MS = 60_000;

/** While a request is under way the object looks after this, ms: it may have lost its memory meanwhile. */
const STANDBY_MS = 5_000;

/** Starts of one lease. Times in epoch ms. */
interface Starts {
  lease: number;
  count: number;
  left: number;
  until: number;
}

export interface Situation {
  /** The settings of the key, as the queue received them. */
  settings: KeySettings;
  running: number;
  /** Epoch ms. */
  now: number;
}

export class Holder {
  /** Jobs wait for the key, and nothing else keeps them from starting. */
  needs = false;
  /** Its queue hands out nothing: what it holds is of no use here. */
  rests = false;
  /** What jobs in this queue named last. */
  declared: DeclaredLimits | undefined;
  /** When the queue must look at the key if nothing else happens before, epoch ms. */
  lookAt = Number.POSITIVE_INFINITY;
  private slots = 0;
  private starts: Starts[] = [];
  /** Leases that ended with starts left, and were not reported yet. */
  private left: [lease: number, count: number][] = [];
  /** Until when it may start jobs of a throttle, and the earliest next start; epoch ms. */
  private turn: { until: number; isUsed: boolean } | undefined;
  private spacedUntil = Number.NEGATIVE_INFINITY;
  private session: number | undefined;
  /** The desk may have noted more for this queue than it knows of: the next answer says. */
  private isUnsure = true;
  private number = 0;
  /** When the request that is under way was sent, epoch ms. */
  private sentAt: number | undefined;
  /** The desk had nothing. When to ask again, epoch ms. */
  private again = Number.NEGATIVE_INFINITY;
  private recalled: { most?: number; until: number } | undefined;
  private unused = 0;
  /** What the desk said last; `until`: when its term ends, epoch ms. */
  private known: { declared: DeclaredLimits | undefined; settings: KeySettings; until: number } | undefined;
  /** A job has named other limits since the desk's last answer. */
  private hasNamed = false;
  /** Attempts have started since the desk's last answer. */
  private isUsed = false;
  private clock = Number.NEGATIVE_INFINITY;

  /** A job in this queue names other limits than the key had. @param at when, epoch ms */
  name(limits: Limits, at: number): void {
    this.declared = { limits, at };
    this.hasNamed = true;
  }

  /** The limits in force, as far as they are known here. */
  limits({ settings, now }: Pick<Situation, 'settings' | 'now'>): Limits {
    const { known } = this;
    const later = known && known.settings.version > settings.version ? known.settings : settings;
    return limitsInForce(known ? known.declared : this.declared, later, now);
  }

  /** How many attempts may start now. 0 before the desk has answered. */
  room(situation: Situation): number {
    const { now } = situation;
    this.tick(now);
    const { rate, throttle } = this.limits(situation);
    let room = this.roomToRun(situation);
    if (rate) room = Math.min(room, rate.limit > 0 ? sum(this.starts.map(({ left }) => left)) : 0);
    if (throttle) {
      const isOpen = throttle.limit > 0 && this.turn !== undefined && now >= this.spacedUntil;
      room = Math.min(room, isOpen ? 1 : 0);
    }
    return Math.max(0, room);
  }

  /** How many may continue whose starts were counted before: they need slots alone. 0 before the desk has answered. */
  roomToRun(situation: Situation): number {
    const { now, running } = situation;
    this.tick(now);
    const limits = this.limits(situation);
    if (!this.isInformed(now) || isStopped(limits)) return 0;
    const { concurrency } = limits;
    if (concurrency === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(0, Math.min(this.usableSlots(now), concurrency) - running);
  }

  /** No room, but the desk may have some: nothing is decided. */
  isUndecided(situation: Situation): boolean {
    const { now } = situation;
    if (this.room(situation) > 0 || isStopped(this.limits(situation)) || now < this.again) return false;
    return !this.isInformed(now) || !this.hasAll(situation);
  }

  take(count: number, situation: Situation): void {
    const { now } = situation;
    const { rate, throttle } = this.limits(situation);
    this.tick(now);
    this.isUsed = true;
    let wanted = rate ? count : 0;
    for (const lease of this.starts) {
      const taken = Math.min(wanted, lease.left);
      lease.left -= taken;
      wanted -= taken;
      if (taken > 0 && lease.left === 0) this.unused = Math.max(0, this.unused - 1);
    }
    this.starts = this.starts.filter(({ left }) => left > 0);
    if (throttle && throttle.limit > 0 && count > 0) {
      this.spacedUntil = Math.max(this.spacedUntil, now) + count * spacingOf(throttle);
      if (this.turn) this.turn.isUsed = true;
    }
  }

  /** When jobs may start that find no room now, epoch ms; undefined: it is not known. */
  opensAt({ now }: Pick<Situation, 'now'>): number | undefined {
    const { turn, spacedUntil, again } = this;
    if (turn && spacedUntil > now && spacedUntil < turn.until) return Math.ceil(spacedUntil);
    return again > now ? again : undefined;
  }

  /** When the queue must look at the key again, epoch ms; infinity: what it waits for comes by itself. */
  looksAt(situation: Situation): number {
    if (!this.isNeeding) return Number.POSITIVE_INFINITY;
    const isUnderWay = this.sentAt !== undefined || this.hasToAsk(situation);
    return this.opensAt(situation) ?? (isUnderWay ? situation.now + STANDBY_MS : Number.POSITIVE_INFINITY);
  }

  /** Is there something to ask, to give back or to report now? */
  hasToAsk(situation: Situation): boolean {
    if (this.sentAt !== undefined) return false;
    this.tick(situation.now);
    if (this.returnable(situation) > 0 || this.mustReturnStarts(situation.now)) return true;
    if (this.recalledAt(situation.now) && this.isUnsure) return true;
    if (this.hasNews(situation)) return true;
    const { now, running } = situation;
    const isInformed = this.isInformed(now);
    // Attempts that started without a limit run, and there may be one now: the desk must count them.
    if (!isInformed && running > this.slots) return true;
    if (this.isUsed && isInformed && !this.isInformed(now + TERM_MS / 2)) return true;
    const { slots, starts } = this.wants(situation);
    return (slots || starts || (this.isNeeding && !isInformed)) && now >= this.again;
  }

  /** The next request. What it gives back is gone, whether it arrives or not. */
  ask(queue: string, situation: Situation): LeaseRequest {
    const { now, running, settings } = situation;
    this.tick(now);
    const slots = this.session === undefined ? 0 : this.returnable(situation);
    this.slots -= slots;
    const isOver = this.mustReturnStarts(now) && !this.isNeeding;
    const turn = isOver && this.turn !== undefined;
    if (isOver) {
      for (const { lease, left } of this.starts) this.left.push([lease, left]);
      this.starts = [];
      this.turn = undefined;
    }
    const starts = this.left;
    this.left = [];
    this.sentAt = now;
    return {
      queue,
      ...(this.session !== undefined && { session: this.session }),
      number: ++this.number,
      ...(this.declared && { declared: this.declared }),
      settings,
      running,
      back: { slots, starts, turn },
      wants: this.wants(situation),
      unused: this.unused,
    };
  }

  /** The desk has answered this request. @param now epoch ms */
  answered({ number, session }: LeaseRequest, answer: LeaseAnswer, now: number): void {
    this.tick(now);
    if (number !== this.number || this.sentAt === undefined) return;
    const { sentAt } = this;
    this.sentAt = undefined;
    if ('stale' in answer) {
      this.session = undefined;
      this.isUnsure = true;
      return;
    }
    this.isUnsure = false;
    this.session = answer.session;
    this.slots = answer.slots;
    this.isUsed = false;
    this.hasNamed = false;
    this.known = { declared: answer.declared, settings: answer.settings, until: sentAt + TERM_MS };
    const until = sentAt + answer.lasts_ms;
    if (answer.starts > 0) this.starts.push({ lease: number, count: answer.starts, left: answer.starts, until });
    if (answer.turn) this.turn = { until, isUsed: false };
    this.again = answer.again_ms === undefined ? Number.NEGATIVE_INFINITY : now + answer.again_ms;
    // Only the answer to a first request says what there is to give back.
    if (answer.most !== undefined) this.recalled = { most: answer.most, until: now + RECALL_MS };
    else if (session !== undefined) this.recalled = undefined;
    this.tick(now);
  }

  /** The request may not have arrived, or its answer was lost. */
  failed({ number }: LeaseRequest): void {
    if (number !== this.number) return;
    this.sentAt = undefined;
    this.isUnsure = true;
  }

  /** The desk calls. @param recall see `deskCalls` */
  called(recall: { most?: number } | undefined, now: number): void {
    this.again = Number.NEGATIVE_INFINITY;
    if (recall) this.recalled = { ...recall, until: now + RECALL_MS };
    else if (this.known) this.known.until = Math.min(this.known.until, now);
  }

  /** Gives back all that is not in use: the key has not been used for long. */
  letGo(now: number): void {
    this.called({ most: 0 }, now);
  }

  get isEmpty(): boolean {
    return this.slots === 0 && this.starts.length === 0 && this.sentAt === undefined;
  }

  private get isNeeding(): boolean {
    return this.needs && !this.rests;
  }

  /** Does the desk's last answer hold at `now`? */
  private isInformed(now: number): boolean {
    return this.known !== undefined && now < this.known.until;
  }

  /** All slots are here and in use: the end of an attempt gives room, not the desk. */
  private hasAll(situation: Situation): boolean {
    const { concurrency } = this.limits(situation);
    if (concurrency === undefined || this.slots < concurrency) return false;
    return Math.min(this.usableSlots(situation.now), concurrency) <= situation.running;
  }

  private usableSlots(now: number): number {
    const most = this.recalledAt(now)?.most;
    return most === undefined ? this.slots : Math.min(this.slots, most);
  }

  private recalledAt(now: number): { most?: number } | undefined {
    if (this.recalled && this.recalled.until <= now) this.recalled = undefined;
    return this.recalled;
  }

  /** Slots that a recall claims, and no attempt uses. Without starts none can. */
  private returnable(situation: Situation): number {
    const { running, now } = situation;
    const most = this.recalledAt(now)?.most;
    if (most === undefined || this.session === undefined) return 0;
    const isUsing = this.isNeeding && !this.lacksStarts(this.limits(situation));
    return Math.max(0, this.slots - Math.max(running, isUsing ? Math.min(most, this.slots) : 0));
  }

  private lacksStarts({ rate, throttle }: Limits): boolean {
    return (rate !== undefined && this.starts.length === 0) || (throttle !== undefined && !this.turn);
  }

  private mustReturnStarts(now: number): boolean {
    if (!this.recalledAt(now)) return false;
    return this.left.length > 0 || (!this.isNeeding && (this.starts.length > 0 || this.turn !== undefined));
  }

  /** Does the desk apply other limits than a job names? */
  differs(limits: Limits): boolean {
    return this.known !== undefined && differ(limits, this.known.declared?.limits);
  }

  /** Does the desk lack what is known here? */
  private hasNews({ settings }: Situation): boolean {
    const { known, declared } = this;
    if (!known) return this.hasNamed;
    if (settings.version > known.settings.version && differ(keyOf(settings), keyOf(known.settings))) return true;
    if (!declared || declared.at <= (known.declared?.at ?? Number.NEGATIVE_INFINITY)) return false;
    return differ(declared.limits, known.declared?.limits);
  }

  private wants(situation: Situation): LeaseRequest['wants'] {
    const limits = this.limits(situation);
    if (!this.isNeeding || isStopped(limits) || this.hasAll(situation)) return { slots: false, starts: false };
    const isFull = this.usableSlots(situation.now) <= situation.running;
    if (this.isInformed(situation.now)) {
      return { slots: limits.concurrency !== undefined && isFull, starts: this.lacksStarts(limits) };
    }
    // Whatever the limits are now: the desk grants what they bound.
    const hasStarts = this.starts.length > 0 || this.turn !== undefined;
    return { slots: isFull, starts: !hasStarts || this.lacksStarts(limits) };
  }

  /** Leases end. If the clock was set back it is unknown how much time has passed: then they all do. */
  private tick(now: number): void {
    const back = this.clock - now;
    if (back > 0) {
      for (const lease of this.starts) lease.until = now;
      if (this.turn) this.turn.until = now;
      if (this.known) this.known.until = now;
      if (this.recalled) this.recalled.until -= back;
      if (this.sentAt !== undefined) this.sentAt = Number.NEGATIVE_INFINITY;
      this.again -= back;
      this.spacedUntil -= back;
    }
    this.clock = now;
    for (const { lease, count, left, until } of this.starts) {
      if (until > now) continue;
      this.left.push([lease, left]);
      if (left === count) this.unused++;
    }
    this.starts = this.starts.filter(({ until }) => until > now);
    if (this.turn && this.turn.until <= now) {
      if (!this.turn.isUsed) this.unused++;
      this.turn = undefined;
    }
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);
const differ = (a: unknown, b: unknown): boolean => JSON.stringify(a ?? null) !== JSON.stringify(b ?? null);
const keyOf = ({ override, declared }: KeySettings) => ({ override, declared });
