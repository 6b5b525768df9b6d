/**
 * The object of an allowance: a lock object named after a key. It stores {@link Desk}'s decisions before answering.
 * Once a day it forgets idle queues, and empties itself if none is left.
 */
import { type Call, Desk } from '../allowance/desk';
import type { HolderRow, KeyRow } from '../allowance/rows';
import type { Env } from '../config';
import { ALLOWANCE, Schema } from '../durable/schema';
import { put, rows } from '../durable/sql';
import { type AllowanceView, DESK_PREFIX, type LeaseAnswer, type LeaseRequest } from '../rpc/allowances';
import { REGISTER } from '../rpc/locks';
import { misplacement } from '../rpc/place';
import { lockObject, queueObject } from '../rpc/stubs';
import { FirstRow, ROUND_MS } from './first-row';

/** The next turn of a round, ms. */
const NEXT_TURN_MS = 1_000;

export class AllowanceDesk {
  private desk: Desk | undefined;
  private readonly first: FirstRow;

  private constructor(
    private readonly ctx: DurableObjectState,
    private readonly env: Env,
    private readonly tables: Schema,
    private readonly key: string,
  ) {
    this.first = new FirstRow(ctx, env, tables);
  }

  /** Undefined: the object with this name is not the desk of an allowance. */
  static of(ctx: DurableObjectState, env: Env): AllowanceDesk | undefined {
    const { name } = ctx.id;
    if (!name?.startsWith(DESK_PREFIX)) return undefined;
    const tables = new Schema(ctx.storage, ALLOWANCE, name, misplacement(ctx.id, env));
    return new AllowanceDesk(ctx, env, tables, name.slice(DESK_PREFIX.length));
  }

  async lease(request: LeaseRequest): Promise<LeaseAnswer> {
    await this.first.prepare();
    const { answer, holder, key, calls } = this.opened().lease(request, Date.now());
    const { sql } = this.ctx.storage;
    if (key) put(sql, 'allowance', { key: this.key, data: JSON.stringify(key) });
    if (holder) put(sql, 'leased', { queue: request.queue, data: JSON.stringify(holder) });
    this.call(calls);
    return answer;
  }

  view(): AllowanceView | null {
    return this.tables.exist() ? this.opened().view(Date.now()) : null;
  }

  /** Never rejects. */
  async alarm(): Promise<void> {
    await this.first.clock.ring(() => this.goRound());
  }

  private async goRound(): Promise<void> {
    this.first.clock.fired(Date.now());
    if (!this.tables.exist()) return;
    const desk = this.opened();
    const { forgotten, calls, isOver } = desk.round(Date.now());
    for (const queue of forgotten) rows(this.ctx.storage.sql, 'DELETE FROM leased WHERE queue = ?', queue);
    this.call(calls);
    if (desk.holders.size > 0) this.first.planRound(isOver ? ROUND_MS : NEXT_TURN_MS);
    else await this.empty();
  }

  async reset(): Promise<void> {
    this.desk = undefined;
    await this.first.removeAll();
  }

  private async empty(): Promise<void> {
    await this.ctx.blockConcurrencyWhile(async () => {
      await this.reset();
      await lockObject(this.env, REGISTER).unregister(this.ctx.id.name ?? '');
    });
  }

  private opened(): Desk {
    this.desk ??= this.open();
    return this.desk;
  }

  private open(): Desk {
    const { sql } = this.ctx.storage;
    const [key] = rows<{ data: string }>(sql, 'SELECT data FROM allowance WHERE key = ?', this.key);
    const leased = rows<{ queue: string; data: string }>(sql, 'SELECT queue, data FROM leased');
    const holders = leased.map(({ queue, data }) => [queue, JSON.parse(data) as HolderRow] as const);
    const known: KeyRow = key ? JSON.parse(key.data) : { settings: { version: 0 } };
    return new Desk(known, new Map(holders), () => crypto.getRandomValues(new Uint32Array(1))[0] as number);
  }

  /** Calls queues, and waits for none. A lost call is made again when the next request finds nothing. */
  private call(calls: readonly Call[]): void {
    for (const call of calls) {
      const done = this.callQueue(call).catch((error) => {
        console.error(`tocsin: the desk of ${this.key} could not call queue ${call.queue}`, error);
      });
      this.ctx.waitUntil(done);
    }
  }

  private async callQueue({ queue, recall }: Call): Promise<void> {
    const known = this.opened().holders.get(queue);
    const at = known && { session: known.session, number: known.number };
    if (!at || (await queueObject(this.env, queue).deskCalls(this.key, recall))) return;
    const holder = this.opened().gone(queue, at);
    if (holder) put(this.ctx.storage.sql, 'leased', { queue, data: JSON.stringify(holder) });
  }
}
