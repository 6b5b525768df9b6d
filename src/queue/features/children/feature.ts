/** Jobs that handlers wait for in other queues: starts, ends and cancellations. Those of one queue need no message. */
import { MAX_REACHED, reach, type ToJobs } from '../../../across/locate';
import type { TransactionStep } from '../../../durable/group-commit';
import { type MessageKind, posted } from '../../../durable/outbox-relay';
import { ApiError, type ErrorData } from '../../../job/errors';
import { routeOf } from '../../../job/ids';
import type { RunEnding } from '../../../rpc/runs';
import type { Feature, Host } from '../../feature';
import { cancelOpen } from '../../jobs/cancel';
import { hasDeparted } from '../../jobs/may-enqueue';
import { endRuns, isAwaited, noteStarted, RUN, type RunMessage, type StartedJob } from '../../jobs/runs';
import { find } from '../../read/find';
import { postRunNote, RUN_CANCEL, RUN_ENDED, type RunNote } from '../../store/run-notes';

/** Ends and cancellations that one transaction applies here; further ones follow by message. */
const MAX_APPLIED = 1_000;

const NO_STEPS: readonly TransactionStep[] = [];

export class Children implements Feature {
  readonly messages: readonly MessageKind[];

  constructor(private readonly host: Host) {
    this.messages = [
      starts(host),
      forwarded<RunEnding>(
        host,
        RUN_ENDED,
        ({ by }) => by,
        (object, ends) => object.runsEnded(ends),
      ),
      forwarded<string>(
        host,
        RUN_CANCEL,
        (id) => id,
        (object, ids) => object.cancelSteps(ids),
      ),
    ];
  }

  steps(_: number, when: 'before' | 'after'): readonly TransactionStep[] {
    const { q } = this.host;
    if (when === 'before' || q.store.runs.size === 0) return NO_STEPS;
    // What fails here is left: it goes by message.
    const failed = (error: unknown) => console.error('tocsin: the ends of jobs could not be applied at once', error);
    return [{ run: (now) => this.apply(now), failed }];
  }

  private apply(now: number): void {
    const { q } = this.host;
    const { runs, outbox } = q.store;
    let applied = 0;
    for (let at = 0; at < runs.size; ) {
      const notes = runs.from(at);
      at += notes.length;
      const own: RunNote[] = [];
      for (const note of notes) {
        if (applied < MAX_APPLIED && this.isOwn(note)) {
          own.push(note);
          applied++;
        } else postRunNote(outbox, note, now);
      }
      const ended = own.flatMap((note) => (note.kind === RUN_ENDED ? [note.ending] : []));
      for (const ending of endRuns(q, ended, now)) {
        if (this.mayBeElsewhere(ending, now)) postRunNote(outbox, { kind: RUN_ENDED, queue: q.name, ending }, now);
      }
      const cancelled = own.flatMap((note) => (note.kind === RUN_CANCEL ? [note.id] : []));
      for (const id of cancelOpen(q, cancelled, now)) postRunNote(outbox, { kind: RUN_CANCEL, queue: q.name, id }, now);
    }
    runs.forget();
  }

  /** A queue that took over the jobs of another has what they name by its name. */
  private isOwn(note: RunNote): boolean {
    const { q } = this.host;
    return note.queue === q.name || find(q, note.kind === RUN_ENDED ? note.ending.by : note.id) !== undefined;
  }

  /** A job that was made here and is gone is gone, unless it moved away. */
  private mayBeElsewhere({ by }: RunEnding, now: number): boolean {
    const { q } = this.host;
    return routeOf(by) !== q.route || q.config.removal !== undefined || hasDeparted(q, by, now);
  }
}

/** May the same job be taken later? */
const passes = ({ retryable, code }: ErrorData) => retryable || code === 'conflict';

/** Jobs for another queue, once for each message. If nothing waits for them any more, they are cancelled on arrival. */
function starts({ q, write, others }: Host): MessageKind {
  return posted(q.store.outbox, write, {
    kind: RUN,
    send: async (address, [{ data }], taken) => {
      const message = JSON.parse(data) as RunMessage;
      const { queue, jobs, round } = message;
      const isVoid = !isAwaited(q, message);
      const entries = jobs.map(({ job }) => ({ queue, job: isVoid ? { ...job, superseded: true } : job }));
      const once = { key: `run\n${address}\n${round}`, hash: '' };
      const answer = await others.enqueueEach(
        entries.map((value) => ({ ok: true, value })),
        once,
      );
      const left = jobs.filter((_, at) => {
        const outcome = answer.outcomes[at];
        return outcome && !outcome.ok && passes(outcome.error);
      });
      const first = answer.outcomes.find((outcome) => !outcome.ok);
      // A remembered answer stays as it is: the jobs are sent again under another key.
      if (left.length === jobs.length && !answer.replayed && first && !first.ok) throw new ApiError(first.error);
      const ends = jobs.flatMap(({ place }, at): StartedJob[] => {
        const outcome = answer.outcomes[at];
        if (!outcome) return [];
        if (outcome.ok) return [{ place, id: outcome.value.record.id }];
        return passes(outcome.error) ? [] : [{ place, error: outcome.error }];
      });
      await taken((now) => {
        noteStarted(q, message, ends, now);
        if (left.length === 0) return;
        q.store.outbox.post(RUN, address, JSON.stringify({ ...message, jobs: left, round: round + 1 }), now);
      });
    },
  });
}

const itemsIn = ({ data }: { data: string }) => JSON.parse(data) as unknown[];
const together = { most: MAX_REACHED, itemsIn: (message: { data: string }) => itemsIn(message).length };

/** Items for a queue, each about one job, that reach it wherever it is now. */
const forwarded = <T>(
  { q, write, others }: Host,
  kind: string,
  idOf: (item: T) => string,
  send: ToJobs<T>,
): MessageKind =>
  posted(q.store.outbox, write, {
    kind,
    together,
    send: async (queue, messages, taken) => {
      await reach(others, queue, messages.flatMap(itemsIn) as T[], idOf, send);
      await taken(() => undefined);
    },
  });
