/** Operations on many jobs that outlive their request: one transaction per step, resumed by the outbox relay. */

import { STANDBY_MS } from '../../../durable/outbox';
import { derived, type MessageKind } from '../../../durable/outbox-relay';
import { waitAtMost } from '../../../durable/wait';
import type { OperationView } from '../../../rpc/operations';
import type { Feature, Host } from '../../feature';
import { forgetMoment, forgetTasks, noteFailure, openTasks, stepTask, viewTask } from './tasks';

export class BulkOperations implements Feature {
  /** The next step of the oldest operation, derived from its record. */
  readonly messages: readonly MessageKind[];
  private readonly waiting = new Set<{ id: string; done: () => void }>();
  private open: string[];

  constructor(private readonly host: Host) {
    this.open = openTasks(host.q);
    const steps = derived({
      kind: 'step of operation',
      open: () => this.open.slice(0, 1),
      deliver: (id) => this.step(id),
    });
    this.messages = [steps];
  }

  due(): number | undefined {
    return forgetMoment(this.host.q);
  }

  tidy(now: number): void {
    forgetTasks(this.host.q, now);
  }

  began(id: string): void {
    const { wakeAt, now, relay } = this.host;
    if (!this.open.includes(id)) this.open.push(id);
    wakeAt(now() + STANDBY_MS);
    relay().start();
  }

  /** The operation, at its end or after `waitMs`. */
  async view(id: string, waitMs: number, withItems = false): Promise<OperationView | undefined> {
    const { q } = this.host;
    const first = viewTask(q, id, withItems);
    if (!first || first.done || waitMs <= 0) return first;
    const ended = new Promise<void>((resolve) => this.waiting.add({ id, done: resolve }));
    await waitAtMost(waitMs, ended);
    return viewTask(q, id, withItems);
  }

  private async step(id: string): Promise<void> {
    const { q, write } = this.host;
    let done: boolean;
    try {
      done = await write((now) => stepTask(q, id, now));
    } catch (error) {
      done = await write((now) => noteFailure(q, id, now));
      if (!done) throw error;
    }
    if (done) this.finished(id);
    // Requests that came meanwhile go first.
    else await scheduler.wait(0);
  }

  finished(id: string): void {
    this.open = this.open.filter((other) => other !== id);
    for (const entry of this.waiting) {
      if (entry.id !== id) continue;
      this.waiting.delete(entry);
      entry.done();
    }
  }
}
