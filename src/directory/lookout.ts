/**
 * Revives the directory after an outage that took every alarm (such as the free plan's daily limit, which ends at
 * 00:00 UTC): another object of its class, the lookout, calls it.
 *
 *     lookout ──(once a day)──▶ directory ──(when due)──▶ queues; once a day, and after an outage,
 *        ▲                         │  ▲                     │             workflows, webhooks, shards
 *        └──(with each look)───────┘  └──(first commit)─────┘
 *
 * While no queue is looked after, none of them has an alarm for this.
 */

import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { errorDataOf } from '../durable/platform-errors';
import type { Schema } from '../durable/schema';
import type { DirectoryApi } from '../rpc/directory';
import {
  DIRECTORY,
  directoryObject,
  idShard,
  LOOKOUT,
  lookoutObject,
  webhookObject,
  workflowObject,
} from '../rpc/stubs';
import type { WorkflowList } from './workflows';

const DAY_MS = 24 * 3_600_000;

/** From 00:00 UTC until the lookout calls, ms. */
const AFTER_MIDNIGHT_MS = 5 * 60_000;

/** Workflows that are called in one event, and the pause before the next, ms. */
const MOST_AT_ONCE = 200;
const NEXT_TURN_MS = 1_000;

const LAST = '~';

interface Own {
  readonly tables: Pick<Schema, 'rows'>;
  readonly webhooks: { readonly list: { all(): readonly { id: string }[] } };
  readonly workflows: Pick<WorkflowList, 'page'>;
}

export class Lookout {
  /** When it calls the directory, if it is the lookout and queues are looked after; epoch ms. */
  private callsAt: number | undefined;
  /** Workflows before the one with this id are still to be called, after an outage. */
  private revivesBefore: string | undefined;

  constructor(
    private readonly env: Env,
    private readonly name: string,
  ) {}

  /** This object was called, so the directory must be called back; it revives the others once a day. */
  called(now: number): void {
    if (this.name === LOOKOUT) this.callsAt = (Math.floor(now / DAY_MS) + 1) * DAY_MS + AFTER_MIDNIGHT_MS;
    if (this.name === DIRECTORY) this.alarmsWereLost();
  }

  /** Alarms were lost: objects that nothing else wakes must be called. */
  alarmsWereLost(): void {
    this.revivesBefore ??= LAST;
  }

  due(now: number): number | undefined {
    return this.revivesBefore === undefined ? this.callsAt : now + NEXT_TURN_MS;
  }

  /** The alarm has fired. Never rejects. @param hasLooked the directory has looked after queues */
  async alarm(own: Own, hasLooked: boolean, now: number): Promise<void> {
    try {
      if (this.name === LOOKOUT) await this.callDirectory(now);
      if (hasLooked) await lookoutObject(this.env).revive();
      if (this.revivesBefore !== undefined) await this.reviveOthers(own, this.revivesBefore);
    } catch (error) {
      if (!errorDataOf(error)?.retryable) console.error('tocsin: an object could not be looked after', error);
    }
  }

  private async callDirectory(now: number): Promise<void> {
    // Stays if the call fails.
    this.called(now);
    if (!(await directoryObject(this.env).revive())) this.callsAt = undefined;
  }

  /** Calls the next workflows that run; first the webhooks and the shards, of which there are few. */
  private async reviveOthers({ tables, webhooks, workflows }: Own, before: string): Promise<void> {
    const { env } = this;
    const others: DirectoryApi[] = [];
    if (before === LAST) {
      others.push(...webhooks.list.all().map(({ id }) => webhookObject(env, id)));
      others.push(...tables.rows<{ name: string }>('SELECT name FROM id_shards').map(({ name }) => idShard(env, name)));
    }
    const page = workflows.page({ states: ['running'], before, offset: 0, limit: MOST_AT_ONCE });
    this.revivesBefore = page.more ? page.workflows.at(-1)?.id : undefined;
    await inParallel(others, (one) => one.revive().catch(() => false));
    // To be constructed is enough: it arms its alarm.
    await inParallel(page.workflows, ({ id }) =>
      workflowObject(env, id)
        .get()
        .catch(() => undefined),
    );
  }
}
