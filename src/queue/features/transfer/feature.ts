/** Carries decided moves of dead letters through: for whoever decided, and by the alarm for whoever died over it. */

import { notFound, type Outcome, unavailable, unwrap } from '../../../job/errors';
import type { JobView } from '../../../job/record';
import type { Feature, Host } from '../../feature';
import { moveReserved } from '../../jobs/move-reserved';
import type { Move } from '../../store/move-table';
import { dropMove, finishMove, packedMove, STANDBY_MS } from './moves';

/** Pause before a move that failed is tried again: at first, and at most; ms. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/** Moves carried on at once by the alarm. */
const WIDTH = 20;

export class Moves implements Feature {
  /** By key of the job: two that carry the same move share it. */
  private readonly running = new Map<number, Promise<Outcome<JobView>>>();
  private pauseUntil = 0;
  private pauseMs = FIRST_PAUSE_MS;

  constructor(private readonly host: Host) {}

  due(now: number): number | undefined {
    if (this.host.q.moves.size === 0) return undefined;
    return this.running.size > 0 ? now + STANDBY_MS : Math.max(now, this.pauseUntil);
  }

  /** Goes on with moves that nobody drives. */
  start(why: 'commit' | 'alarm'): void {
    const { q, keepAlive, now } = this.host;
    if (why === 'commit' || q.moves.size === 0 || now() < this.pauseUntil) return;
    for (const { key } of q.moves.all().slice(0, WIDTH)) {
      // Whoever is to hear of a failure has been told.
      if (!this.running.has(key)) keepAlive(this.finish(key).catch(() => undefined));
    }
  }

  /**
   * Carries a decided move through.
   * @returns the job in its new queue, or why that queue refused it; 503 when it will go on by itself
   */
  finish(key: number): Promise<Outcome<JobView>> {
    const move = this.host.q.moves.of(key);
    if (!move) return Promise.resolve({ ok: false, error: notFound('dead letter', String(key)).data });
    const running =
      this.running.get(key) ??
      this.carry(move)
        .catch((error) => this.failed(move, error))
        .finally(() => this.running.delete(key));
    this.running.set(key, running);
    return running;
  }

  private async carry(move: Move): Promise<Outcome<JobView>> {
    const { q, write, others } = this.host;
    const { key, target, name } = move;
    const job = packedMove(q, move);
    if (!job) {
      await write(() => q.moves.forget(key));
      return { ok: false, error: notFound('dead letter', String(key)).data };
    }
    const answer = await moveReserved(q, [job], target, others.reservations, async (ticket) => {
      const adoption = unwrap(await others.queue(target).adoptMoved(name, job, ticket));
      await write((now) => ('refused' in adoption ? dropMove(q, key) : finishMove(q, key, now)));
      return adoption;
    });
    this.pauseMs = FIRST_PAUSE_MS;
    if ('refused' in answer) return { ok: false, error: answer.refused };
    return answer.job ? { ok: true, value: answer.job } : { ok: false, error: notFound('job', job.id).data };
  }

  private failed({ key, target }: Move, error: unknown): Outcome<JobView> {
    console.error(`tocsin: a dead letter of queue ${this.host.q.name} is not in queue ${target} yet`, key, error);
    this.pauseUntil = this.host.now() + this.pauseMs;
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
    this.host.wakeAt(this.pauseUntil);
    const { data } = unavailable(`The job is on its way to queue ${target} and will arrive by itself.`);
    return { ok: false, error: data };
  }
}
