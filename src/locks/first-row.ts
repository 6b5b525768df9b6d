/** What an object of the locks does before it stores anything for the first time. */
import type { Env } from '../config';
import type { Schema } from '../durable/schema';
import { REGISTER } from '../rpc/locks';
import { lockObject } from '../rpc/stubs';

/** From the first row to the first round, and from one to the next, ms. */
export const ROUND_MS = 24 * 3_600_000;

/** Makes its tables, once, however many requests ask for that at the same time. */
export class FirstRow {
  private preparing: Promise<void> | undefined;

  constructor(
    private readonly ctx: DurableObjectState,
    private readonly env: Env,
    private readonly tables: Schema,
  ) {}

  /** Before the first row: in the register first, so that a reset finds this object, and the round is planned. */
  async prepare(): Promise<void> {
    if (this.tables.exist()) return;
    this.preparing ??= this.makeTables().finally(() => {
      this.preparing = undefined;
    });
    await this.preparing;
  }

  private async makeTables(): Promise<void> {
    await lockObject(this.env, REGISTER).register(this.ctx.id.name ?? '');
    this.tables.create();
    await this.ctx.storage.setAlarm(Date.now() + ROUND_MS);
  }
}
