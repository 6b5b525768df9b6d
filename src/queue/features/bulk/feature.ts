/**
 * Operations on many jobs that outlive their request: they go in steps of one transaction each, with other requests in
 * between, and the alarm takes them up again wherever they were cut off.
 */
import { withPatience } from '../../../durable/patience';
import type { OperationView } from '../../../rpc/operations';
import type { Feature, Host } from '../../feature';
import { forgetMoment, forgetTasks, noteFailure, openTasks, stepTask, viewTask } from './tasks';

/** While steps are being made the alarm stands by, in case the object dies; ms. */
const STANDBY_MS = 1_000;

/** Pause after a step that failed, ms. */
const PAUSE_MS = 1_000;

export class BulkOperations implements Feature {
  private running: Promise<void> | undefined;
  private readonly waiting = new Set<{ id: string; done: () => void }>();
  /** No step is tried before, epoch ms. */
  private pauseUntil = 0;
  private open: string[];

  constructor(private readonly host: Host) {
    this.open = openTasks(host.q);
  }

  due(now: number): number | undefined {
    if (this.open.length === 0) return forgetMoment(this.host.q);
    return this.running ? now + STANDBY_MS : Math.max(now, this.pauseUntil);
  }

  /** Forgets operations that were done long ago. */
  tidy(now: number): void {
    forgetTasks(this.host.q, now);
  }

  start(why: 'commit' | 'alarm'): void {
    if (why === 'alarm') this.goOn();
  }

  private goOn(): void {
    if (this.running || this.open.length === 0 || this.host.now() < this.pauseUntil) return;
    this.running = this.run().finally(() => {
      this.running = undefined;
    });
    this.host.keepAlive(this.running);
  }

  /** An operation was noted. */
  began(id: string): void {
    if (!this.open.includes(id)) this.open.push(id);
    this.host.wakeAt(this.host.now() + STANDBY_MS);
    this.goOn();
  }

  /** The operation, at its end or after `waitMs`. */
  async view(id: string, waitMs: number, withItems = false): Promise<OperationView | undefined> {
    const { q } = this.host;
    const first = viewTask(q, id, withItems);
    if (!first || first.done || waitMs <= 0) return first;
    const ended = new Promise<void>((resolve) => this.waiting.add({ id, done: resolve }));
    await withPatience(waitMs, ended);
    return viewTask(q, id, withItems);
  }

  private async run(): Promise<void> {
    const { q } = this.host;
    for (let id = this.open[0]; id !== undefined; id = this.open[0]) {
      const task = id;
      let done: boolean;
      try {
        done = await this.host.write((now) => {
          q.wake(now + STANDBY_MS);
          return stepTask(q, task, now);
        });
      } catch (error) {
        console.error(`tocsin: a step of operation ${task} failed`, error);
        done = await this.failed(task);
        if (!done) return;
      }
      if (done) this.finished(task);
      // Whoever came meanwhile goes first.
      else await scheduler.wait(0);
    }
  }

  /** @returns whether the operation is given up */
  private async failed(id: string): Promise<boolean> {
    this.pauseUntil = this.host.now() + PAUSE_MS;
    this.host.wakeAt(this.pauseUntil);
    try {
      return await this.host.write((now) => noteFailure(this.host.q, id, now));
    } catch {
      return false;
    }
  }

  private finished(id: string): void {
    this.open = this.open.filter((other) => other !== id);
    for (const entry of this.waiting) {
      if (entry.id !== id) continue;
      this.waiting.delete(entry);
      entry.done();
    }
  }
}
