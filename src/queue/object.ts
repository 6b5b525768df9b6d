/** The queue object: one per queue. What it answers stands in `verbs.ts`, how it lives in `life.ts`. */
import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../config';
import type { QueueApi } from '../rpc/queue';
import { QueueLife } from './life';
import { VERBS } from './verbs';

/** An object whose prototype has the verbs as methods, where the runtime looks for what may be called over RPC. */
abstract class Answering extends DurableObject<Env> {
  abstract readonly life: QueueLife;

  static {
    for (const [name, verb] of Object.entries(VERBS) as [string, (life: QueueLife, ...args: unknown[]) => unknown][]) {
      Object.defineProperty(Answering.prototype, name, {
        value(this: Answering, ...args: unknown[]) {
          return verb(this.life, ...args);
        },
      });
    }
  }
}

export class QueueObject extends (Answering as unknown as new (
  ctx: DurableObjectState,
  env: Env,
) => DurableObject<Env> & QueueApi) {
  readonly life: QueueLife;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.life = new QueueLife(ctx, env);
  }

  override async alarm(): Promise<void> {
    await this.life.alarm();
  }
}
