/**
 * The directory: the small object that knows which queues exist. A queue registers itself once, and gets the number that
 * its job ids carry. Never on the way of a job. What it answers stands in `verbs.ts`, how it lives in `life.ts`.
 */
import type { Env } from '../config';
import { followed } from '../durable/followed';
import type { DirectoryApi, KnownQueue } from '../rpc/directory';
import { DirectoryLife } from './life';
import { VERBS } from './verbs';

/** As the runtime's types can say it: they know no way to send settings, which may hold anything. */
type Sent = Omit<DirectoryApi, 'register'> & { register(name: string): Promise<KnownQueue> };

export class DirectoryObject extends followed<Env, DirectoryLife, Sent>(VERBS) {
  readonly life: DirectoryLife;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.life = new DirectoryLife(ctx, env);
  }

  override async alarm(): Promise<void> {
    const { tables } = this.life;
    if (tables.refusal) await tables.standBy(Date.now());
    else await this.life.alarm();
  }
}
