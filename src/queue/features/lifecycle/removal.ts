/** The deletion of a queue: removes jobs, leaves the directory, empties the object (steps: `remove.ts`). */
import { derived, type MessageKind } from '../../../durable/outbox-relay';
import { waitAtMost } from '../../../durable/wait';
import { unwrap } from '../../../job/errors';
import type { Feature, Host } from '../../feature';
import { moveReserved } from '../../jobs/move-reserved';
import type { Moving } from '../../store/removal';
import { canGoOn, discardNext, dropMoved, packed, readyToEmpty, setAside } from './remove';

export class QueueRemoval implements Feature {
  /** The next step of the deletion, to the queue itself, derived from its record. */
  private readonly next: MessageKind;
  readonly messages: readonly MessageKind[];

  constructor(private readonly host: Host) {
    const { q } = host;
    this.next = derived({
      kind: 'deletion of queue',
      open: () => (q.config.removal && canGoOn(q) ? [q.name] : []),
      deliver: () => this.step(),
    });
    this.messages = [this.next];
  }

  /** Deletes the queue. Answers when it is gone, is blocked, or after `waitMs`. @returns whether it is gone */
  async removed(waitMs: number): Promise<boolean> {
    const { q, relay } = this.host;
    const steps = relay()
      .deliver(this.next, q.name)
      .then(
        () => relay().idle(this.next),
        () => undefined,
      );
    await waitAtMost(waitMs, steps);
    return !q.config.removal;
  }

  private async step(): Promise<void> {
    const { q, write, others } = this.host;
    const { strategy, target_queue: target } = q.config.removal ?? {};
    if (strategy === 'move' && target !== undefined) {
      const moving = await write((now) => setAside(q, now));
      if (moving) return this.move(moving, target);
    }
    if (strategy === 'discard' && !(await write((now) => discardNext(q, now)))) {
      // Requests that came meanwhile go first.
      await scheduler.wait(0);
      return;
    }
    if (!q.config.removal || !readyToEmpty(q)) return;
    await others.destroy(q.config.removal.at);
    delete q.config.removal;
  }

  private async move(moving: Moving, target: string): Promise<void> {
    const { q, write, others } = this.host;
    const jobs = packed(q, moving);
    await others.noteIds(
      target,
      jobs.map(({ id }) => id),
    );
    await moveReserved(q, jobs, target, others.reservations, async (ticket) => {
      unwrap(await others.queue(target).adopt(moving.name, jobs, ticket));
      await write((now) => dropMoved(q, now));
    });
  }
}
