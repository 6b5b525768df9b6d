/** The queue object: one per queue. What it answers stands in `verbs.ts`, how it lives in `life.ts`. */
import type { Env } from '../config';
import { followed } from '../durable/followed';
import type { QueueApi } from '../rpc/queue';
import { QueueLife } from './life';
import { VERBS } from './verbs';

export class QueueObject extends followed<Env, QueueLife, QueueApi>(VERBS) {
  readonly life: QueueLife;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.life = new QueueLife(ctx, env);
  }

  override async alarm(): Promise<void> {
    await this.life.alarm();
  }
}
