/** The tables and the alarm of an object of the locks: made before it stores anything, and looked after. */
import type { Env } from '../config';
import { AlarmClock } from '../durable/alarm-clock';
import type { Schema } from '../durable/schema';
import { REGISTER } from '../rpc/locks';
import { lockObject } from '../rpc/stubs';

/** From the first row to the first round, and from one to the next, ms. */
export const ROUND_MS = 24 * 3_600_000;

/** Makes its tables, once, however many requests ask for that at the same time. */
export class FirstRow {
  readonly clock: AlarmClock;
  private preparing: Promise<void> | undefined;
  private isWatched = false;

  constructor(
    private readonly ctx: DurableObjectState,
    private readonly env: Env,
    private readonly tables: Schema,
  ) {
    this.clock = new AlarmClock(ctx.storage, null);
  }

  /** Before the first row: in the register first, so that a reset finds this object, and the round is planned. */
  async prepare(): Promise<void> {
    if (this.tables.exist()) return this.watch();
    this.preparing ??= this.makeTables().finally(() => {
      this.preparing = undefined;
    });
    await this.preparing;
  }

  private async makeTables(): Promise<void> {
    await lockObject(this.env, REGISTER).register(this.ctx.id.name ?? '');
    this.tables.create();
    this.planRound();
  }

  planRound(pause = ROUND_MS): void {
    const now = Date.now();
    this.clock.arm(now + pause, now);
  }

  /** Leaves nothing: no row, no table, no alarm. */
  async removeAll(): Promise<void> {
    if (!this.tables.exist()) return;
    await this.clock.clear();
    await this.ctx.storage.deleteAll();
    this.tables.forget();
  }

  /** Once in the life of the object: an alarm that was lost is armed again. */
  private async watch(): Promise<void> {
    if (this.isWatched) return;
    this.isWatched = true;
    if ((await this.ctx.storage.getAlarm()) === null) this.planRound();
  }
}
