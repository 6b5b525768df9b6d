/**
 * What a transaction has gathered for jobs that wait for others: ends for their handlers, and jobs to cancel because
 * nothing waits for them any more. Those of this queue are applied in the same transaction (`features/children`).
 */
import type { Outbox } from '../../durable/outbox';
import { runningIn } from '../../job/runs';
import type { StepRun } from '../../job/wire';
import type { RunEnding } from '../../rpc/runs';

/** The kinds of the messages for other queues. Their addresses are queues, their data JSON arrays of these. */
export const RUN_ENDED = 'run ended';
export const RUN_CANCEL = 'run cancel';

export type RunNote =
  | { kind: typeof RUN_ENDED; queue: string; ending: RunEnding }
  | { kind: typeof RUN_CANCEL; queue: string; id: string };

export class RunNotes {
  private notes: RunNote[] = [];

  get size(): number {
    return this.notes.length;
  }

  /** Forgets what was gathered after `size`: it was rolled back. */
  rollback(size: number): void {
    this.notes.length = Math.min(size, this.notes.length);
  }

  ended(queue: string, ending: RunEnding): void {
    this.notes.push({ kind: RUN_ENDED, queue, ending });
  }

  /** Nothing waits for these jobs any more, unless they are detached. */
  abandon(run: StepRun): void {
    if (!run.detached) this.cancel(runningIn(run));
  }

  cancel(jobs: readonly { id: string; queue: string }[]): void {
    for (const { id, queue } of jobs) this.notes.push({ kind: RUN_CANCEL, queue, id });
  }

  from(at: number): readonly RunNote[] {
    return this.notes.slice(at);
  }

  forget(): void {
    this.notes = [];
  }

  post(outbox: Outbox): void {
    if (this.notes.length === 0) return;
    for (const note of this.notes) postRunNote(outbox, note, 0);
    this.forget();
  }
}

export function postRunNote(outbox: Outbox, note: RunNote, now: number): void {
  outbox.gather(note.kind, note.queue, JSON.stringify(note.kind === RUN_ENDED ? note.ending : note.id), now);
}
