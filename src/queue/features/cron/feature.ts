/** Cron entries: fires them in transactions, asks other queues about unique jobs, and hands over entries that move. */

import type { TransactionStep } from '../../../durable/group-commit';
import { derived, type MessageKind, posted } from '../../../durable/outbox-relay';
import { ApiError } from '../../../job/errors';
import type { CronView } from '../../../rpc/cron';
import type { Feature, Host } from '../../feature';
import { acrossJobs, dueCrons, fireCron, fireWaiting, noteAnswer } from './fire';
import { CRON } from './manage';

/** Pause of an entry that could not be fired, ms: after a passing failure, and after a defect. */
const TRY_AGAIN_MS = 1_000;
const DEFECT_PAUSE_MS = 60_000;

export class CronFeature implements Feature {
  readonly messages: readonly MessageKind[];

  constructor(private readonly host: Host) {
    this.messages = [movedCrons(host), acrossFires(host)];
  }

  /** During maintenance nothing fires: missed fires are handled at its end, by the entry's policy for them. */
  get overdueAt(): number {
    const { store, config } = this.host.q;
    const { nextAt } = store.crons;
    return nextAt === Number.POSITIVE_INFINITY ? nextAt : Math.max(nextAt, config.shutUntil);
  }

  steps(now: number, when: 'before' | 'after'): TransactionStep[] {
    const { q } = this.host;
    const isBefore = when === 'before';
    const names = isBefore ? dueCrons(q, now) : q.store.crons.waiting(now);
    if (names.length === 0 || q.config.maintenance(now)) return [];
    const { turn } = q.store;
    const fireDue = (name: string, at: number) => {
      // An entry may catch up on many fires. One that is skipped stays due.
      if (turn.isSpent) q.wake.at(at);
      else turn.spend({ changes: fireCron(q, name, at) });
    };
    const waiting = (name: string, at: number) => fireWaiting(q, name, at);
    const fire = isBefore ? fireDue : waiting;
    return names.map((name) => ({
      run: (at) => fire(name, at),
      failed: (error) => {
        const passing = error instanceof ApiError;
        if (!passing) console.error(`tocsin: cron ${name} of queue ${q.name} could not be fired`, error);
        // A failing entry must not keep the alarm busy, nor delay the others.
        q.store.crons.postpone(name, now + (passing ? TRY_AGAIN_MS : DEFECT_PAUSE_MS));
        q.wake.at(q.store.crons.nextAt);
      },
    }));
  }

  due(now: number): number {
    const { q } = this.host;
    // A fire that waited for a job may follow when the maintenance ends, though the job ended during it.
    return q.config.maintenance(now) && q.store.crons.waiting(q.config.shutUntil).length > 0
      ? q.config.shutUntil
      : this.overdueAt;
  }
}

/** Fires that other queues must be asked about: the oldest of each entry. They follow from the entries. */
const acrossFires = ({ q, write, others }: Host): MessageKind =>
  derived({
    kind: 'fire of cron',
    open: () => q.store.crons.across(),
    deliver: async (name) => {
      const fire = acrossJobs(q, name)[0];
      if (!fire) return;
      const outcome = await others.enqueueAcross(fire.job);
      if (!outcome.ok && outcome.error.status >= 500) throw new ApiError(outcome.error);
      await write((now) => noteAnswer(q, name, fire.pending, outcome, now));
    },
  });

function movedCrons({ q, write, others }: Host): MessageKind {
  return posted(q.store.outbox, write, {
    kind: CRON,
    send: async (_, [message], taken) => {
      const { definition, run, version } = JSON.parse(message.data) as CronView;
      const outcome = await others.queue(definition.queue).putCron({ definition, run, version });
      // A refusal means that a later change has won.
      if (!outcome.ok && outcome.error.status >= 500) throw new ApiError(outcome.error);
      await taken(() => undefined);
    },
  });
}
