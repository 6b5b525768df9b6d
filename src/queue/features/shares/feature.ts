/** Batches over several queues under way: decisions for other queues, and unfinished shares. */
import { cancelAt, MAX_REACHED } from '../../../across/locate';
import { type MessageKind, posted } from '../../../durable/outbox-relay';
import { inParallel } from '../../../durable/parallel';
import { waitAtMost } from '../../../durable/wait';
import { unwrap } from '../../../job/errors';
import type { IdPlace } from '../../../rpc/ids';
import type { Feature, Host } from '../../feature';
import { DECISION, isReplaced, readShare, SHARE, type Untold, writeDecision } from '../../store/batches';
import { abortBatch, commitBatch } from './batch';

/** The caller of a decision waits at most this long for the other queues to commit, ms. */
const TOLD_WITHIN_MS = 5_000;

const idsOf = (jobs: readonly IdPlace[]) => jobs.map(({ id }) => id);

/** They stand before the queues. */
const nextReplaced = (untold: Untold) => untold.slice(0, MAX_REACHED).filter(isReplaced);

export class Batches implements Feature {
  private readonly decisions: MessageKind;
  readonly messages: readonly MessageKind[];

  constructor(private readonly host: Host) {
    const { q, write, others } = host;
    this.decisions = posted(q.store.outbox, write, {
      kind: DECISION,
      send: async (batch, [{ data }], taken) => {
        let untold = JSON.parse(data) as Untold;
        for (let some = nextReplaced(untold); some.length > 0; some = nextReplaced(untold)) {
          const at = Map.groupBy(some, ({ queue }) => queue);
          await inParallel([...at], ([queue, jobs]) => cancelAt(others, queue, idsOf(jobs)));
          untold = untold.slice(some.length);
          if (untold.some(isReplaced)) await write((now) => writeDecision(q, batch, untold, now));
        }
        const queues = untold.filter((one) => typeof one === 'string');
        const told = await Promise.allSettled(
          queues.map(async (queue) => unwrap(await others.queue(queue).commitBatch(batch))),
        );
        const failure = told.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined;
        if (!failure) return taken(() => undefined);
        const pending = queues.filter((_, at) => told[at]?.status === 'rejected');
        if (pending.length < untold.length) await write((now) => writeDecision(q, batch, pending, now));
        throw failure.reason;
      },
    });
    const shares = posted(q.store.outbox, write, {
      kind: SHARE,
      // Finishing the batch withdraws the outbox message.
      send: async (batch) => {
        const share = readShare(q, batch);
        if (!share) return;
        const decision = unwrap(await others.queue(share.coordinator).batchDecision(batch));
        await write((now) => (decision === 'committed' ? commitBatch(q, batch, now) : abortBatch(q, batch, now)));
      },
    });
    this.messages = [this.decisions, shares];
  }

  /** Waits a moment until the other queues have received a decision. Never rejects: the outbox relay continues. */
  async told(batch: string): Promise<void> {
    const delivered = this.host.relay().deliver(this.decisions, batch);
    await waitAtMost(
      TOLD_WITHIN_MS,
      delivered.catch(() => undefined),
    );
  }
}
