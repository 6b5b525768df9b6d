/**
 * What outlives a request: operations on many jobs, and the deletion of the queue. Both go in steps of one transaction
 * each, with other requests in between, and are taken up again by the alarm wherever they were cut off.
 */

import type { Reservations } from '../../../across/reservation';
import { withPatience } from '../../../durable/patience';
import { unwrap } from '../../../job/errors';
import type { OperationsApi, OperationView } from '../../../rpc/operations';
import type { DutyHost } from '../../duty-host';
import {
  discardNext,
  dropMoved,
  LOOK_AGAIN_MS,
  type Moving,
  packed,
  readyToEmpty,
  setAside,
} from '../lifecycle/remove';
import { MoveDuties } from '../transfer/duties';
import { moveReserved } from '../transfer/reserved';
import { noteFailure, openTasks, stepTask, viewTask } from './tasks';

/** While steps are being made the alarm stands by, in case the object dies; ms. */
const STANDBY_MS = 1_000;

/** The longest pause before a deletion that failed goes on, ms: the target of a move may be draining for days. */
const LONGEST_PAUSE_MS = 60_000;

export interface OperationHost extends DutyHost {
  peer(queue: string): Pick<OperationsApi, 'adopt' | 'adoptMoved'>;
  /** Begins to reserve fingerprints, under a new ticket. @param coordinator the queue that can give the ticket up */
  reservations(coordinator: string): Reservations;
  /** Leaves the directory and empties the object, for good. @param at when the deletion began, epoch ms */
  destroy(at: number): Promise<void>;
}

export class OperationDuties {
  /** Dead letters on their way to other queues. */
  readonly moves: MoveDuties;
  private running: Promise<void> | undefined;
  private removing: Promise<void> | undefined;
  private readonly waiting = new Set<{ id: string; done: () => void }>();
  /** No step is tried before, epoch ms. */
  private pauseUntil = 0;
  /** The deletion does not go on before, epoch ms; and how long it waits when it fails, ms. */
  private removeAfter = 0;
  private removePauseMs = LOOK_AGAIN_MS;
  private open: string[];

  constructor(private readonly host: OperationHost) {
    this.open = openTasks(host.q);
    this.moves = new MoveDuties(host);
  }

  /** When the object must wake for them, epoch ms. */
  nextMoment(now: number): number | undefined {
    const moments = [this.moves.nextMoment(now) ?? Number.POSITIVE_INFINITY];
    if (this.open.length > 0) moments.push(this.running ? now + STANDBY_MS : Math.max(now, this.pauseUntil));
    if (this.host.q.removal) moments.push(this.removing ? now + STANDBY_MS : Math.max(now, this.removeAfter));
    const next = Math.min(...moments);
    return Number.isFinite(next) ? next : undefined;
  }

  /** Goes on with whatever there is to do. */
  start(): void {
    const { q, keepAlive, now } = this.host;
    this.moves.start();
    if (!this.running && this.open.length > 0 && now() >= this.pauseUntil) {
      this.running = this.run().finally(() => {
        this.running = undefined;
      });
      keepAlive(this.running);
    }
    if (!this.removing && q.removal && now() >= this.removeAfter) {
      this.removing = this.remove()
        .catch((error) => {
          console.error(`tocsin: queue ${q.name} could not be deleted yet`, error);
          this.removeIn(this.removePauseMs);
          this.removePauseMs = Math.min(2 * this.removePauseMs, LONGEST_PAUSE_MS);
        })
        .finally(() => {
          this.removing = undefined;
        });
      keepAlive(this.removing);
    }
  }

  /** An operation was noted. */
  began(id: string): void {
    if (!this.open.includes(id)) this.open.push(id);
    this.host.wakeAt(this.host.now() + STANDBY_MS);
    this.start();
  }

  /** The queue is to be deleted. Answers when it is gone, or after `waitMs`. @returns whether it is gone */
  async removed(waitMs: number): Promise<boolean> {
    this.start();
    await withPatience(waitMs, Promise.resolve(this.removing));
    return !this.host.q.removal;
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
    this.pauseFor(LOOK_AGAIN_MS);
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

  private pauseFor(ms: number): void {
    this.pauseUntil = this.host.now() + ms;
    this.host.wakeAt(this.pauseUntil);
  }

  private removeIn(ms: number): void {
    this.removeAfter = this.host.now() + ms;
    this.host.wakeAt(this.removeAfter);
  }

  private async remove(): Promise<void> {
    const { q, write } = this.host;
    const target = q.removal?.strategy === 'move' ? q.removal.target_queue : undefined;
    while (target !== undefined) {
      const moving = await write(() => setAside(q));
      if (!moving) break;
      await this.move(moving, target);
      this.removePauseMs = LOOK_AGAIN_MS;
    }
    while (q.removal?.strategy === 'discard' && !(await write((now) => discardNext(q, now)))) await scheduler.wait(0);
    if (!q.removal || !readyToEmpty(q)) return this.removeIn(LOOK_AGAIN_MS);
    await this.host.destroy(q.removal.at);
    delete q.removal;
  }

  private async move(moving: Moving, target: string): Promise<void> {
    const { q, write, peer, reservations } = this.host;
    const jobs = packed(q, moving);
    await moveReserved(q, jobs, target, reservations, async (ticket) => {
      unwrap(await peer(target).adopt(moving.name, jobs, ticket));
      await write(() => dropMoved(q));
    });
  }
}
