/**
 * The directory: the small object that knows which queues exist. A queue registers itself once, and gets the number
 * that its job ids carry. No job passes through it. Its answers are in `verbs.ts`, its life in `life.ts`.
 */
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
