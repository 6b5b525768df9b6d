/**
 * The lock object keeps enqueues of one fingerprint apart over several queues; objects are chosen by its first
 * digits.
 *
 *     reserve ──▶ ask the queues it names ──▶ enqueue under the ticket ──▶ release
 *
 * Reservations are in memory and may be lost, so the job's queue and the enqueue's ticket are stored before. The next
 * reservation gets every ticket not known as decided, and asks its queue, which has the job or will reject it. So at
 * most one job comes of it, and no enqueue waits longer than one reservation lasts. The end of a job releases
 * nothing: the next enqueue or the daily round finds out.
 */
import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../config';
import { LOCKS, Schema } from '../durable/schema';
import { put, rows } from '../durable/sql';
import { Timers } from '../durable/timers';
import { type Outcome, unavailable } from '../job/errors';
import { decodeId } from '../job/ids';
import type { AllowanceApi, AllowanceView, LeaseAnswer, LeaseRequest } from '../rpc/allowances';
import {
  MAX_RESERVATION_MS,
  type OpenTicket,
  type ReleaseRequest,
  type Reservation,
  type ReserveRequest,
  type UniqueLockApi,
} from '../rpc/locks';
import { misplacement } from '../rpc/place';
import { MAX_TICKET_AGE_MS } from '../rpc/queue';
import { queueObject } from '../rpc/stubs';
import { AllowanceDesk } from './allowance-desk';
import { FirstRow, ROUND_MS } from './first-row';

/** A ticket of this age is refused by its queue, even if the two clocks differ by as much again: it cannot be open. */
const CERTAIN_AFTER_MS = 3 * MAX_TICKET_AGE_MS;

/** Rows looked at in one step of a round. */
const ROUND_STEP = 500;
/** Bounds of one alarm: rows and queues; the next one continues soon, ms. The platform allows 1,000 calls. */
export const TURN_ROWS = 25_000;
const TURN_CALLS = 400;
const NEXT_TURN_MS = 1_000;

/** Where the next turn of a round continues, as the storage keeps it. Absent: at the first row. */
const PLACE = 'round';

type Row = { fingerprint: string; queue: string; tickets: string };
type Ticket = { ticket: string; coordinator: string };
type LockPlace = Pick<Row, 'fingerprint' | 'queue'>;

interface Waiting {
  request: ReserveRequest;
  resolve: (outcome: Outcome<Reservation>) => void;
  reject: (reason: unknown) => void;
  endWait: () => void;
}

export class UniqueLockObject extends DurableObject<Env> implements UniqueLockApi, AllowanceApi {
  /** The ticket that has a fingerprint reserved, and until when (epoch ms). */
  private readonly reserved = new Map<string, { ticket: string; until: number }>();
  private waiting: Waiting[] = [];
  /** Tickets known to be decided, with the time they were noted. */
  private readonly known = new Map<string, number>();
  private readonly after = new Timers(() => Date.now()).after;
  private endExpiry: (() => void) | undefined;
  private readonly tables = new Schema(this.ctx.storage, LOCKS, this.ctx.id.name, misplacement(this.ctx.id, this.env));
  private readonly first = new FirstRow(this.ctx, this.env, this.tables);
  /** What the object is if its name is that of an allowance: nothing else of this class is used then. */
  private readonly desk = AllowanceDesk.of(this.ctx, this.env);

  async reserve(request: ReserveRequest): Promise<Outcome<Reservation>> {
    await this.first.prepare();
    return new Promise((resolve, reject) => {
      const endWait = this.after(request.wait_ms, () => this.giveUp(waiting));
      const waiting: Waiting = { request, resolve, reject, endWait };
      this.waiting.push(waiting);
      this.grantAll();
    });
  }

  async release({ ticket, known, decided, vacant }: ReleaseRequest): Promise<void> {
    const now = Date.now();
    for (const one of known ? [...decided, ticket] : decided) this.known.set(one, now);
    for (const [one, at] of this.known) if (now - at > CERTAIN_AFTER_MS) this.known.delete(one);
    for (const { fingerprint, queue } of vacant) {
      // Only while the reservation stands may a row be removed on the word of its holder.
      if (this.reserved.get(fingerprint)?.ticket === ticket) this.remove(fingerprint, queue);
    }
    for (const [fingerprint, holder] of this.reserved) {
      if (holder.ticket !== ticket) continue;
      this.reserved.delete(fingerprint);
      this.letPeek(fingerprint);
    }
    this.grantAll();
  }

  async register(name: string): Promise<void> {
    this.tables.create();
    this.query('INSERT OR IGNORE INTO shards (name) VALUES (?)', name);
  }

  async unregister(name: string): Promise<void> {
    if (this.tables.exist()) this.query('DELETE FROM shards WHERE name = ?', name);
  }

  async lease(request: LeaseRequest): Promise<LeaseAnswer> {
    return (this.desk as AllowanceDesk).lease(request);
  }

  async allowance(): Promise<AllowanceView | null> {
    return this.desk?.view() ?? null;
  }

  async shards(): Promise<string[]> {
    if (!this.tables.exist()) return [];
    return this.query<{ name: string }>('SELECT name FROM shards').map(({ name }) => name);
  }

  async reset(): Promise<void> {
    if (this.desk) return this.desk.reset();
    for (const waiting of this.waiting) this.giveUp(waiting);
    this.reserved.clear();
    this.known.clear();
    await this.first.removeAll();
  }

  /** A turn of the daily round. Never throws: what could not be asked is asked the next day. */
  override async alarm(): Promise<void> {
    if (this.desk) return this.desk.alarm();
    await this.first.clock.ring(() => this.goRound());
  }

  private async goRound(): Promise<void> {
    this.first.clock.fired(Date.now());
    if (!this.tables.exist()) return;
    let pause = ROUND_MS;
    try {
      if (await this.removeVacant()) pause = NEXT_TURN_MS;
      else if (this.query('SELECT 1 FROM holders LIMIT 1').length === 0) return;
    } catch (error) {
      console.error('tocsin: a lock object could not finish its round', error);
    }
    this.first.planRound(pause);
  }

  // ---- reservations ----------------------------------------------------------------------------

  /** Grants in the order of arrival; later requests for the same fingerprint stay behind. */
  private grantAll(): void {
    const now = Date.now();
    const taken = new Set<string>();
    this.waiting = this.waiting.filter((waiting) => {
      const { request, resolve, reject, endWait } = waiting;
      const blocked = request.wanted.some(
        ({ fingerprint }) => taken.has(fingerprint) || this.isReserved(fingerprint, now),
      );
      if (blocked) {
        for (const { fingerprint } of request.wanted) taken.add(fingerprint);
        return true;
      }
      endWait();
      try {
        resolve({ ok: true, value: this.grant(request, now) });
      } catch (error) {
        // A request that got a failure holds nothing, and the others continue.
        reject(error);
      }
      return false;
    });
    this.watchForExpiry(now);
  }

  /** Answers all requests that wait for a fingerprint once a reservation ended: most are duplicates of the first. */
  private letPeek(fingerprint: string): void {
    this.waiting = this.waiting.filter(({ request, resolve, endWait }) => {
      if (!request.peek || !request.wanted.some((want) => want.fingerprint === fingerprint)) return true;
      endWait();
      const holders = this.rowsOf(fingerprint).map(({ queue }) => ({ fingerprint, queue }));
      resolve({ ok: true, value: { granted: false, holders, open: [] } });
      return false;
    });
  }

  /** While requests wait: looks again when the first reservation times out. */
  private watchForExpiry(now: number): void {
    this.endExpiry?.();
    this.endExpiry = undefined;
    if (this.waiting.length === 0) return;
    const next = Math.min(...Array.from(this.reserved.values(), ({ until }) => until).filter((until) => until > now));
    if (Number.isFinite(next)) this.endExpiry = this.after(next - now + 1, () => this.grantAll());
  }

  private isReserved(fingerprint: string, now: number): boolean {
    const holder = this.reserved.get(fingerprint);
    return holder !== undefined && holder.until > now;
  }

  private giveUp(waiting: Waiting): void {
    waiting.endWait();
    this.waiting = this.waiting.filter((other) => other !== waiting);
    waiting.resolve({
      ok: false,
      error: unavailable('Another enqueue of the same unique job is still in progress.').data,
    });
  }

  private grant(request: ReserveRequest, now: number): Reservation {
    const { ticket, coordinator, wanted } = request;
    const reservation: Reservation = { granted: true, holders: [], open: [] };
    const ttl = Math.min(request.ttl_ms, MAX_RESERVATION_MS);
    this.ctx.storage.transactionSync(() => {
      for (const fingerprint of new Set(wanted.map((want) => want.fingerprint))) {
        const queues = new Set(wanted.filter((want) => want.fingerprint === fingerprint).map(({ queue }) => queue));
        const rows = this.rowsOf(fingerprint);
        for (const row of rows) {
          reservation.open.push(...this.openTicketsOf(row, now));
          reservation.holders.push({ fingerprint, queue: row.queue });
        }
        for (const queue of queues) {
          const row = rows.find((other) => other.queue === queue);
          const open = row ? this.openTicketsOf(row, now) : [];
          const tickets: Ticket[] = open.map(({ ticket, coordinator }) => ({ ticket, coordinator }));
          this.write({ fingerprint, queue, tickets: JSON.stringify([...tickets, { ticket, coordinator }]) });
        }
      }
    });
    for (const { fingerprint } of wanted) this.reserved.set(fingerprint, { ticket, until: now + ttl });
    return reservation;
  }

  /** The tickets of a row that may still be on their way. */
  private openTicketsOf(row: Row, now: number): OpenTicket[] {
    const { fingerprint, queue } = row;
    return ticketsIn(row)
      .filter(({ ticket }) => !this.known.has(ticket) && now - decodeId(ticket).time < CERTAIN_AFTER_MS)
      .map((ticket) => ({ fingerprint, queue, ...ticket }));
  }

  // ---- the daily round -------------------------------------------------------------------------

  /** One turn, from where the last one ended. @returns whether there is more to look at */
  private async removeVacant(): Promise<boolean> {
    const { storage } = this.ctx;
    const begun = await storage.get<LockPlace>(PLACE);
    let place: LockPlace | undefined = begun ?? { fingerprint: '', queue: '' };
    let calls = 0;
    for (let looked = 0; place && looked < TURN_ROWS && calls < TURN_CALLS; looked += ROUND_STEP) {
      const page = 'SELECT * FROM holders WHERE (fingerprint, queue) > (?, ?) ORDER BY fingerprint, queue LIMIT ?';
      const rows: Row[] = this.query<Row>(page, place.fingerprint, place.queue, ROUND_STEP);
      for (const [queue, ofQueue] of Map.groupBy(rows, (row) => row.queue)) {
        calls++;
        try {
          await this.removeVacantOf(queue, ofQueue);
        } catch (error) {
          // It keeps the rows of no other from being looked at.
          console.error(`tocsin: queue ${queue} could not report its unique jobs`, error);
        }
      }
      place = rows.length < ROUND_STEP ? undefined : rows.at(-1);
    }
    if (place) await storage.put<LockPlace>(PLACE, { fingerprint: place.fingerprint, queue: place.queue });
    else if (begun) await storage.delete(PLACE);
    return place !== undefined;
  }

  private async removeVacantOf(queue: string, rows: Row[]): Promise<void> {
    const fingerprints = rows.map(({ fingerprint }) => fingerprint);
    const known = new Set(await queueObject(this.env, queue).knownFingerprints(fingerprints));
    const now = Date.now();
    for (const row of rows) {
      if (known.has(row.fingerprint) || this.isReserved(row.fingerprint, now)) continue;
      const present = this.rowsOf(row.fingerprint).find((other) => other.queue === queue);
      // A ticket that came or is on its way since the question was asked keeps the row.
      if (present?.tickets === row.tickets && this.openTicketsOf(row, now).length === 0)
        this.remove(row.fingerprint, queue);
    }
  }

  // ---- storage ---------------------------------------------------------------------------------

  private query<R extends Record<string, SqlStorageValue>>(sql: string, ...bindings: (string | number)[]): R[] {
    return rows<R>(this.ctx.storage.sql, sql, ...bindings);
  }

  private rowsOf(fingerprint: string): Row[] {
    return this.query<Row>('SELECT * FROM holders WHERE fingerprint = ?', fingerprint);
  }

  private write({ fingerprint, queue, tickets }: Row): void {
    put(this.ctx.storage.sql, 'holders', { fingerprint, queue, tickets });
  }

  private remove(fingerprint: string, queue: string): void {
    this.query('DELETE FROM holders WHERE fingerprint = ? AND queue = ?', fingerprint, queue);
  }
}

/** Those that cannot be read count as none: a damaged row must not keep its fingerprint from all others. */
function ticketsIn({ tickets }: Row): Ticket[] {
  try {
    const read: unknown = JSON.parse(tickets);
    return Array.isArray(read) ? (read as Partial<Ticket>[]).filter(isTicket) : [];
  } catch {
    return [];
  }
}

const isTicket = (given: Partial<Ticket> | null): given is Ticket =>
  typeof given?.ticket === 'string' && typeof given.coordinator === 'string';
