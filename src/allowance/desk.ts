/**
 * The desk of a key: who holds how much of its allowance. Pure; it returns what must be stored before its answer
 * leaves.
 *
 * **Slots** (`concurrency`) belong to a queue until it gives them back; no clock ends them, so they stay counted
 * while attempts run. Each answer has the queue's total, so a lost one wastes nothing for long.
 *
 * **Starts** (`rate`) may be used until the lease ends, and count until a period after that; unused ones are reported
 * with the next request. The queue counts the lease from sending, the desk from receipt: the queue stops first.
 *
 * **A turn** (`throttle`) is a time in which one queue alone starts jobs, evenly spread; the next follows a spacing
 * later.
 *
 * A grant is half of what is free, divided by the queues that asked within the last minute; queues that found nothing
 * are served in order.
 */
import type { Limits } from '../job/limits/policy';
import type { AllowanceView, Lease, LeaseAnswer, LeaseRequest } from '../rpc/allowances';
import { type HolderRow, type KeyRow, mergeOldest } from './rows';
import { isStopped, LONGEST_MS, lengthOf, limitsInForce, spacingOf } from './rules';

/** A queue that asked within this time has its share. */
const RECENTLY_MS = 60_000;

/** A queue that waits for slots asks again after this at the latest: the desk calls it before, if it can. */
const AGAIN_MS = 30_000;

/** A queue that waits is expected to ask within this time, once there is something. Then others have its place. */
const GRACE_MS = 2_000;

/** A queue is asked to give something back at most this often, and not sooner after a grant of slots. */
const RECALL_EVERY_MS = 1_000;

/** Leases of one queue that are stored one by one; beyond that the oldest count as one. */
const MAX_LEASES = 64;

/** Queues called in one event. The platform allows 1,000 calls. */
const MAX_CALLS = 500;

/** A queue's part is forgotten if it holds nothing, and has not asked for this long. */
const FORGET_AFTER_MS = 3_600_000;

export interface Call {
  queue: string;
  /** It must give back what it does not use; of its slots also those beyond this number. Absent: it may ask again. */
  recall?: { most?: number };
}

export interface Leasing {
  answer: LeaseAnswer;
  /** The row of the queue must be stored. */
  holder?: HolderRow;
  /** So must that of the key. */
  key?: KeyRow;
  calls: Call[];
}

type Kind = 'slots' | 'starts';

export class Desk {
  /** When queues were last asked to give something back, or had slots to use first. */
  private readonly recalled = new Map<string, number>();

  /** @param key as stored @param holders as stored, by queue @param newSession another number each time */
  constructor(
    private key: KeyRow,
    readonly holders: Map<string, HolderRow>,
    private readonly newSession: () => number,
  ) {}

  limits(now: number): Limits {
    return limitsInForce(this.key.declared, this.key.settings, now);
  }

  lease(request: LeaseRequest, now: number): Leasing {
    const known = this.holders.get(request.queue);
    const isNew = request.session === undefined;
    if (!isNew && (!known || known.session !== request.session || request.number <= known.number)) {
      return { answer: { stale: true }, calls: [] };
    }
    const hasLearned = this.learn(request);
    const holder: HolderRow = known ?? { session: 0, number: 0, asked: now, slots: 0, leases: [] };
    this.holders.set(request.queue, holder);
    if (isNew) holder.session = this.newSession();
    holder.number = request.number;
    holder.asked = now;
    this.takeBack(holder, request, now);
    const limits = this.limits(now);
    this.tidy(limits, now);
    const lease = this.grant(request, holder, limits, now);
    const { recalls, isTooSoon } = this.recalls(request.queue, holder, limits, now);
    if (isTooSoon && lease.again_ms !== undefined) lease.again_ms = Math.min(lease.again_ms, RECALL_EVERY_MS);
    return {
      answer: lease,
      holder,
      ...(hasLearned && { key: this.key }),
      calls: [...recalls, ...(hasLearned ? this.news(request.queue) : this.invitations(request, limits, now))],
    };
  }

  /** The later of what jobs named, and the later settings, hold. */
  private learn({ declared, settings }: LeaseRequest): boolean {
    const before = this.key;
    const isLater = declared && declared.at > (before.declared?.at ?? Number.NEGATIVE_INFINITY);
    if (isLater) this.key = { ...this.key, declared };
    if (settings.version > before.settings.version) this.key = { ...this.key, settings };
    return this.key !== before;
  }

  private takeBack(holder: HolderRow, { back, running, session }: LeaseRequest, now: number): void {
    holder.slots = Math.max(holder.slots - back.slots, running);
    for (const [number, count] of back.starts) {
      // Another session may have had the same number before.
      const lease = holder.leases.findLast(([other]) => other === number);
      if (lease) lease[2] -= Math.min(count, lease[2]);
    }
    // It started nothing after it sent this.
    if (back.turn && holder.turn && holder.turn.session === session) {
      holder.turn.until = Math.min(holder.turn.until, now);
    }
  }

  /** Forgets leases that count no more. None lasts longer than the longest, whatever the clock said when it began. */
  private tidy({ rate, throttle }: Limits, now: number): void {
    const longest = now + LONGEST_MS;
    for (const holder of this.holders.values()) {
      for (const lease of holder.leases) lease[1] = Math.min(lease[1], longest);
      const period = rate?.period_ms ?? 0;
      holder.leases = holder.leases.filter(([, until, count]) => count > 0 && until + period > now);
      if (holder.leases.length > MAX_LEASES) mergeOldest(holder.leases);
      if (holder.turn) {
        holder.turn.until = Math.min(holder.turn.until, longest);
        const spacing = throttle && throttle.limit > 0 ? spacingOf(throttle) : 0;
        if (holder.turn.until + spacing <= now) delete holder.turn;
      }
      if (holder.waits && holder.waits.until <= now) delete holder.waits;
    }
  }

  private grant({ wants, unused, queue }: LeaseRequest, holder: HolderRow, limits: Limits, now: number): Lease {
    const { concurrency, rate, throttle } = limits;
    const free = concurrency === undefined ? 0 : concurrency - this.slots;
    const lease: Lease = {
      ...{ session: holder.session, slots: 0, starts: 0, turn: false, lasts_ms: 0 },
      ...{ settings: this.key.settings, ...(this.key.declared && { declared: this.key.declared }) },
    };
    // A slot is of no use without a start, nor a start without a slot: they are granted together.
    const wantsStarts = wants.starts && (rate !== undefined || throttle !== undefined);
    const opensIn = !wantsStarts ? 0 : isStopped(limits) ? AGAIN_MS : this.opensIn(limits, queue, now);
    const slots = wants.slots && concurrency !== undefined ? this.share(free, 'slots', queue, now, concurrency) : 0;
    let denied: { kind: Kind; again: number } | undefined;
    if (opensIn > 0) {
      denied = { kind: 'starts', again: opensIn };
    } else if (wants.slots && concurrency !== undefined && slots === 0) {
      denied = { kind: 'slots', again: AGAIN_MS };
    } else {
      holder.slots += slots;
      if (slots > 0) this.recalled.set(queue, now);
      if (wantsStarts) this.grantStarts(lease, limits, holder, unused, queue, now);
    }
    if (denied) {
      const { kind, again } = denied;
      lease.again_ms = Math.ceil(again);
      holder.waits = {
        since: holder.waits?.since ?? now,
        until: now + again + GRACE_MS,
        slots: kind === 'slots',
        starts: kind === 'starts',
      };
    } else {
      delete holder.waits;
    }
    lease.slots = holder.slots;
    if (concurrency === undefined) return lease;
    if (this.waitsOfOthers('slots', queue, now).length > 0) {
      lease.most = Math.max(this.fairShare(concurrency, now), denied ? 0 : holder.slots);
    }
    // While the limit is 0, nothing starts anyway.
    const kept = this.kept(holder, concurrency);
    if (kept < holder.slots && concurrency > 0) lease.most = Math.min(lease.most ?? concurrency, kept);
    return lease;
  }

  /** What a queue may keep: if the limit was lowered, what others do not have of it. */
  private kept({ slots }: HolderRow, concurrency: number): number {
    return Math.max(0, slots - Math.max(0, this.slots - concurrency));
  }

  private grantStarts(
    lease: Lease,
    { rate, throttle }: Limits,
    holder: HolderRow,
    unused: number,
    queue: string,
    now: number,
  ): void {
    const shortest = Math.max(...[rate, throttle].map((quota) => (quota ? lengthOf(quota) : 0)));
    const spread = throttle ? Math.max(lengthOf({ limit: 1, period_ms: 0 }), shortest / this.active(now)) : shortest;
    lease.lasts_ms = Math.floor(Math.min(LONGEST_MS, spread * 2 ** Math.min(unused, 10)));
    if (rate) {
      lease.starts = this.share(rate.limit - this.startsLeased, 'starts', queue, now, rate.limit);
      holder.leases.push([holder.number, now + lease.lasts_ms, lease.starts]);
    }
    if (throttle) {
      lease.turn = true;
      holder.turn = { until: now + lease.lasts_ms, session: holder.session };
    }
  }

  /** When this queue may have a start, if all that wait before it take one, ms from now; 0: now. */
  private opensIn({ rate, throttle }: Limits, queue: string, now: number): number {
    const ahead = this.ahead('starts', queue, now);
    let at = now;
    if (rate) {
      const needed = Math.min(ahead, rate.limit - 1) + 1;
      let free = rate.limit - this.startsLeased;
      const ends = this.leases.sort((a, b) => a[1] - b[1]);
      for (const [, until, count] of ends) {
        if (free >= needed) break;
        free += count;
        at = Math.max(at, until + rate.period_ms);
      }
    }
    if (throttle) {
      const spacing = spacingOf(throttle);
      for (const [other, { turn, session }] of this.holders) {
        // The memory of a queue keeps the spacing between its own turns.
        if (turn && (other !== queue || turn.session !== session)) at = Math.max(at, turn.until + spacing);
      }
      if (ahead > 0) at = Math.max(at, now) + ahead * (spacing + lengthOf(throttle) / this.active(now));
    }
    return Math.max(0, at - now);
  }

  /** A queue's part of what is free: at least one, and enough that small parts do not multiply the requests. */
  private share(free: number, kind: Kind, queue: string, now: number, limit: number): number {
    const left = free - Math.min(this.ahead(kind, queue, now), limit - 1);
    if (left <= 0) return 0;
    return Math.min(left, Math.max(1, Math.ceil(left / 2 / this.active(now)), Math.ceil(limit / 32)));
  }

  /** What other queues wait for, if it is of this kind. */
  private waitsOfOthers(kind: Kind, queue: string, now: number): NonNullable<HolderRow['waits']>[] {
    return [...this.holders].flatMap(([other, { waits }]) =>
      other !== queue && waits?.[kind] && waits.until > now ? [waits] : [],
    );
  }

  /** How many queues have waited for longer. */
  private ahead(kind: Kind, queue: string, now: number): number {
    const own = this.holders.get(queue)?.waits?.since ?? Number.POSITIVE_INFINITY;
    return this.waitsOfOthers(kind, queue, now).filter(({ since }) => since < own).length;
  }

  private active(now: number): number {
    return Math.max(1, [...this.holders.values()].filter(({ asked }) => asked > now - RECENTLY_MS).length);
  }

  private fairShare(limit: number, now: number): number {
    return Math.floor(limit / this.active(now));
  }

  private get slots(): number {
    return [...this.holders.values()].reduce((sum, { slots }) => sum + slots, 0);
  }

  private get leases(): HolderRow['leases'] {
    return [...this.holders.values()].flatMap(({ leases }) => leases);
  }

  private get startsLeased(): number {
    return this.leases.reduce((sum, [, , count]) => sum + count, 0);
  }

  /**
   * If this queue found nothing, others must give back unused parts.
   * @returns which to call, and whether one was called a moment ago: then this queue must ask again soon
   */
  private recalls(
    queue: string,
    { waits }: HolderRow,
    limits: Limits,
    now: number,
  ): { recalls: Call[]; isTooSoon: boolean } {
    if (!waits || isStopped(limits)) return { recalls: [], isTooSoon: false };
    const { concurrency = 0 } = limits;
    const most = (holder: HolderRow) => Math.min(this.fairShare(concurrency, now), this.kept(holder, concurrency));
    const others = [...this.holders].filter(([other, holder]) => {
      // Each request gives back the starts that were left: a queue that asks often need not be called for them.
      const hasStarts = (holder.leases.length > 0 || holder.turn) && now - holder.asked >= RECALL_EVERY_MS;
      return other !== queue && (waits.slots ? holder.slots > 0 : hasStarts);
    });
    const called = this.inTurn(others, RECALL_EVERY_MS, now);
    return {
      recalls: called.map((other) => ({
        queue: other,
        recall: waits.slots ? { most: most(this.holders.get(other) as HolderRow) } : {},
      })),
      isTooSoon: waits.slots && called.length < others.length,
    };
  }

  /** Queues to recall now: none that was recalled within `every` (ms). Those recalled longest ago come first. */
  private inTurn(queues: readonly [string, HolderRow][], every: number, now: number): string[] {
    const at = (queue: string): number => this.recalled.get(queue) ?? 0;
    const due = queues.map(([queue]) => queue).filter((queue) => Math.abs(now - at(queue)) >= every);
    const called = due.sort((a, b) => at(a) - at(b)).slice(0, MAX_CALLS);
    for (const queue of called) this.recalled.set(queue, now);
    return called;
  }

  /** The limits changed: others must ask again, those first that wait. */
  private news(queue: string): Call[] {
    return [...this.holders]
      .filter(([other]) => other !== queue)
      .sort(([, a], [, b]) => Number(b.waits !== undefined) - Number(a.waits !== undefined))
      .slice(0, MAX_CALLS)
      .map(([other]) => ({ queue: other }));
  }

  /** If this queue gave something back, those that wait may ask. */
  private invitations({ queue, back }: LeaseRequest, limits: Limits, now: number): Call[] {
    if (back.slots === 0 && back.starts.length === 0 && !back.turn) return [];
    const free = Math.max((limits.concurrency ?? 0) - this.slots, (limits.rate?.limit ?? 0) - this.startsLeased, 0);
    const waiting = [...this.holders].filter(([other, { waits: its }]) => other !== queue && its && its.until > now);
    waiting.sort(([, a], [, b]) => (a.waits?.since ?? 0) - (b.waits?.since ?? 0));
    return waiting.slice(0, limits.throttle ? 1 : Math.min(free, MAX_CALLS)).map(([other]) => ({ queue: other }));
  }

  /** The queue is no more, unless it has asked since `number`: what it held is free. @returns its row if it changed */
  gone(queue: string, { session, number }: Pick<HolderRow, 'session' | 'number'>): HolderRow | undefined {
    const holder = this.holders.get(queue);
    if (holder?.session !== session || holder.number !== number || holder.slots === 0) return undefined;
    holder.slots = 0;
    return holder;
  }

  /**
   * A turn of the daily round: forgets idle queues, and asks those that hold something.
   * @returns the forgotten ones, those to call, and whether all were called
   */
  round(now: number): { forgotten: string[]; calls: Call[]; isOver: boolean } {
    this.tidy(this.limits(now), now);
    const idle = [...this.holders].filter(([, { asked }]) => asked > now || now - asked >= FORGET_AFTER_MS);
    const forgotten = idle
      .filter(([, { slots, leases, turn }]) => slots === 0 && leases.length === 0 && !turn)
      .map(([queue]) => queue);
    for (const queue of forgotten) {
      this.holders.delete(queue);
      this.recalled.delete(queue);
    }
    const holding = idle.filter(([, { slots }]) => slots > 0);
    const calls = this.inTurn(holding, FORGET_AFTER_MS, now).map((queue) => ({ queue, recall: { most: 0 } }));
    return { forgotten, calls, isOver: calls.length < MAX_CALLS };
  }

  view(now: number): AllowanceView {
    const limits = this.limits(now);
    this.tidy(limits, now);
    const ends = this.leases.map(([, until]) => until);
    return {
      limits,
      leased: [...this.holders]
        .map(([queue, { slots, leases }]) => ({
          queue,
          slots,
          starts: leases.reduce((sum, [, , count]) => sum + count, 0),
        }))
        .filter(({ slots, starts }) => slots > 0 || starts > 0),
      ...(ends.length > 0 && limits.rate && { resets_at: Math.max(...ends) + limits.rate.period_ms }),
    };
  }
}
