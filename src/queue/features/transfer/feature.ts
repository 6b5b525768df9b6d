/** Delivers dead letters that were decided to go to another queue. */
import { type MessageKind, posted } from '../../../durable/outbox-relay';
import { jobNotFound, notFound, type Outcome, unavailable, unwrap } from '../../../job/errors';
import type { JobView } from '../../../job/record';
import type { Adoption } from '../../../rpc/operations';
import type { Feature, Host } from '../../feature';
import { moveReserved } from '../../jobs/move-reserved';
import { MOVE, type Move, moveOf } from '../../store/moves';
import { endMove, packedMove } from './moves';

export class Moves implements Feature {
  /** Delivered with what the target answered; undefined when the job was gone. */
  private readonly moving: MessageKind<Adoption | undefined>;
  readonly messages: readonly MessageKind[];

  constructor(private readonly host: Host) {
    const { q, write, others } = host;
    this.moving = posted(q.store.outbox, write, {
      kind: MOVE,
      send: async (_, [message], taken) => {
        const move = JSON.parse(message.data) as Move;
        const { key, name, target } = move;
        const job = packedMove(q, move);
        if (!job) return taken(() => undefined);
        await others.noteIds(target, [job.id]);
        return moveReserved(q, [job], target, others.reservations, async (ticket) => {
          const adoption = unwrap(await others.queue(target).adoptMoved(name, job, ticket));
          return taken((now) => {
            endMove(q, key, adoption, now);
            return adoption;
          });
        });
      },
    });
    this.messages = [this.moving];
  }

  /**
   * Completes the decided move of a job. @param key of its row
   * @returns the job in its new queue, or that queue's refusal; 503 when it will continue by itself
   */
  async finish(id: string, key: number): Promise<Outcome<JobView>> {
    const target = moveOf(this.host.q.store.outbox, key)?.target;
    try {
      const adoption = target === undefined ? undefined : await this.host.relay().deliver(this.moving, String(key));
      if (!adoption) return { ok: false, error: notFound('dead letter', id).data };
      if ('refused' in adoption) return { ok: false, error: adoption.refused };
      return adoption.job ? { ok: true, value: adoption.job } : jobNotFound(id);
    } catch {
      const { data } = unavailable(`The job is on its way to queue ${target} and arrives automatically.`);
      return { ok: false, error: data };
    }
  }
}
