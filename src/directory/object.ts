/** The directory knows which queues exist, and numbers them for job ids. Verbs: `verbs.ts`; life: `life.ts`. */
import type { Env } from '../config';
import { followed } from '../durable/followed';
import type { DirectoryApi, KnownQueue } from '../rpc/directory';
import { DirectoryLife } from './life';
import { VERBS } from './verbs';

/** As the runtime's types can express it: they cannot describe settings, which may hold any JSON. */
type Sent = Omit<DirectoryApi, 'register'> & { register(name: string): Promise<KnownQueue> };

export class DirectoryObject extends followed<Env, DirectoryLife, Sent>(VERBS) {
  readonly life: DirectoryLife;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.life = new DirectoryLife(ctx, env);
  }

  override async alarm(): Promise<void> {
    await this.life.alarm();
  }
}
