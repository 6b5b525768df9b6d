/** Shares of batches over several queues that nobody has finished: asks who decides, tells who has not heard. */
import { unwrap } from '../../../job/errors';
import type { Feature, Host } from '../../feature';
import { abortBatch, commitBatch, confirmBatch, dueBatches, nextBatchCheck } from './batch';

export class SharesFeature implements Feature {
  constructor(private readonly host: Host) {}

  due(): number | undefined {
    return nextBatchCheck(this.host.q);
  }

  start(why: 'commit' | 'alarm'): void {
    if (why === 'commit') return;
    this.host.keepAlive(
      this.finish().catch((error) => console.error('tocsin: batches could not be looked into', error)),
    );
  }

  private async finish(): Promise<void> {
    const { q, write, writeNow, others, now } = this.host;
    const checkAt = nextBatchCheck(q);
    if (checkAt === undefined || checkAt > now()) return;
    const open = writeNow((at) => dueBatches(q, at));
    const finish = async (run: () => Promise<unknown>): Promise<void> => {
      // A queue that cannot be reached now holds up no other batch; this one is looked into again later.
      await run().catch((error) => console.error('tocsin: a batch could not be finished yet', error));
    };
    for (const { batch, coordinator } of open.ask) {
      await finish(async () => {
        const decision = unwrap(await others.queue(coordinator).batchDecision(batch));
        await write((at) => (decision === 'committed' ? commitBatch(q, batch, at) : abortBatch(q, batch, at)));
      });
    }
    for (const { batch, queues } of open.tell) {
      for (const queue of queues) {
        await finish(async () => {
          unwrap(await others.queue(queue).commitBatch(batch));
          await write((at) => confirmBatch(q, batch, [queue], at));
        });
      }
    }
  }
}
