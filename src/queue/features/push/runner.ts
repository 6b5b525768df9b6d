/**
 * Runs one call with the jobs that were claimed for it, and writes the outcome of each.
 *
 * No failure of a handler escapes from here: every outcome, even of a call that threw, becomes a settled attempt. If an
 * outcome cannot be written, the lease ends its attempt.
 */
import { readEnd, readSignalRights, signalUrl } from '../../../access/token';
import { Telling } from '../../../across/receipts';
import { LONG_CALL_MS } from '../../../dispatch/call';
import { Call, type CallResult, type Delivery } from '../../../dispatch/deliver';
import { type RunMessage, refusalOf } from '../../../dispatch/run-messages';
import { isWithin } from '../../../durable/backoff';
import { type AttemptOutcome, type Enqueuer, failed } from '../../../job/attempt/outcome';
import type { Parent } from '../../../job/envelope/children';
import { PolicyRoom } from '../../../job/envelope/render';
import { writeJob } from '../../../job/envelope/write';
import { conflict } from '../../../job/errors';
import { deliveryId } from '../../../job/ids';
import type { Host } from '../../feature';
import type { Claimed } from '../../jobs/claim';
import { lateAttempt, type Random } from '../../jobs/end-attempt';
import { noteProgress, tellLog } from '../../jobs/progress';
import { Settlement } from '../../jobs/settle';
import { noteStep, recall } from '../../jobs/steps';
import { writeStream } from '../../jobs/streams';
import { viewForRunner } from '../../read/find';
import { type Active, pushedTimeoutMs } from '../../store/active';
import type { QueueParts, Stored } from '../../store/parts';
import { rowByKey } from '../../store/row-lookup';
import { CHILDREN, childrenOf, messagesWith } from './children';
import type { PushTarget } from './target';

interface CallWatcher {
  /**
   * Notes whether the target took the call. Runs inside a transaction. @param trouble how it failed; absent: it took it
   */
  noteCall(target: PushTarget, trouble: string | undefined, now: number): void;
  /** Some jobs of a call are settled while it continues. */
  settled(): void;
}

/** A claimed job, the delivery it went out with, and how that ended. */
interface Delivered extends Pick<Speaker, 'claimed' | 'delivery'> {
  outcome: AttemptOutcome;
  /** JSON texts of the outbox messages with the jobs that it enqueues. */
  children?: readonly string[];
}

interface CalledJob extends Pick<Delivered, 'claimed' | 'delivery'> {
  sent: Delivery;
  isOpen: boolean;
}

export class CallRunner {
  constructor(
    private readonly host: Host,
    private readonly running: RunningCalls,
    private readonly watcher: CallWatcher,
  ) {}

  /** Makes the call and settles its jobs. Never rejects. @returns whether more may follow than completed jobs */
  async run(target: PushTarget, batch: readonly Claimed[]): Promise<boolean> {
    const startedAt = this.host.now();
    let call: Call | undefined;
    try {
      const types = new Set(batch.map(({ row }) => row.type));
      // Jobs that share a call have the same limit.
      const isOpen = target.staysOpen(types, pushedTimeoutMs((batch[0] as Claimed).active) ?? 0);
      const room = new PolicyRoom();
      const jobs = batch.map((claimed) => this.called(target, claimed, isOpen, startedAt, room));
      call = this.callFor(target, jobs, isOpen);
      this.running.add(call);
      const result = await call.run();
      this.running.delete(call);
      target.called(types, { jobs: batch.length, tookMs: this.host.now() - startedAt, ...result });
      await this.settle(target, jobs, result.outcomes, result);
      for (const { kind } of result.outcomes.values()) if (kind !== 'completed') return true;
      return false;
    } catch (error) {
      // The lease ends the attempt: nothing is lost, and the loop continues.
      console.error('tocsin: a call could not be made', error);
      if (call) this.running.delete(call);
      return true;
    }
  }

  private called({ recalls }: PushTarget, claimed: Claimed, isOpen: boolean, now: number, room: PolicyRoom): CalledJob {
    const { q } = this.host;
    const { row, body, active } = claimed;
    const timeoutMs = pushedTimeoutMs(active) ?? 0;
    const view = viewForRunner(q, row, now, isOpen && recalls);
    // The handler library ends a run by the limit it reads here: it must be the one that this side waits for.
    const text = writeJob(view, q.config.variables.retryVariables, body, room, timeoutMs);
    const { id, attempt } = view.record;
    const delivery = deliveryId(id, active.claim);
    const job: Delivery['job'] = { id, attempt, meta: body.meta ?? {} };
    if (body.target_url !== undefined) job.target_url = body.target_url;
    return { claimed, delivery, sent: { delivery_id: delivery, job, text, timeoutMs }, isOpen };
  }

  private callFor(target: PushTarget, jobs: readonly CalledJob[], isOpen: boolean): Call {
    let byDelivery: Map<string, CalledJob> | undefined;
    return new Call(target.config, {
      payload: target.payload,
      workerId: target.workerId,
      deliveries: jobs.map(({ sent }) => sent),
      isOpen,
      now: () => this.host.now(),
      settle: async (outcomes) => {
        await this.settle(target, jobs, outcomes);
        this.watcher.settled();
      },
      hear: async (delivery, message) => {
        byDelivery ??= new Map(jobs.map((job) => [job.delivery, job]));
        const job = byDelivery.get(delivery);
        return job && hear(this.host, { ...job, parent: parentOf(job), target: target.config }, message);
      },
      goesOn: () => this.running.goesOn(),
      after: this.host.after,
    });
  }

  /**
   * Writes outcomes of a call in one operation. If that reveals a defect each is written by itself, so that it costs
   * only the job that has it.
   * @param result when the call is over
   */
  private async settle(
    target: PushTarget,
    jobs: readonly CalledJob[],
    outcomes: ReadonlyMap<string, AttemptOutcome>,
    result?: CallResult,
  ): Promise<void> {
    const { q, random } = this.host;
    const delivered: Delivered[] = [];
    for (const job of jobs) {
      const said = outcomes.get(job.delivery);
      if (!said) continue;
      const { claimed, delivery } = job;
      const outcome = withVerdict(target, job, said);
      const isPlain = outcome.enqueue === undefined;
      delivered.push(isPlain ? { claimed, delivery, outcome } : await this.withChildren(target, job, outcome));
    }
    const note = (now: number): void => {
      if (result) this.watcher.noteCall(target, result.deliveryError ? (result.trouble ?? '') : undefined, now);
    };
    this.host.about(() => delivered.map(({ claimed }) => claimed.row.key));
    const together = await this.isWritten((now) => {
      settleDeliveries(q, delivered, now, random);
      note(now);
    });
    if (together) return;
    for (const one of delivered) await this.isWritten((now) => settleDeliveries(q, [one], now, random));
    await this.isWritten(note);
  }

  /**
   * The outcome to write for a delivery. It fails if it enqueues jobs that are forbidden, or that no queue would take.
   */
  private async withChildren(target: PushTarget, job: CalledJob, outcome: AttemptOutcome): Promise<Delivered> {
    const { claimed, delivery } = job;
    try {
      const children = await messagesWith(target.config, outcome.enqueue, parentOf(job), this.host.now());
      return { claimed, delivery, outcome, children };
    } catch (error) {
      const { code, message } = refusalOf(error);
      return { claimed, delivery, outcome: failed({ code, type: code, message, retryable: false }) };
    }
  }

  private async isWritten(operation: (now: number) => void): Promise<boolean> {
    try {
      await this.host.write(operation);
      return true;
    } catch (error) {
      console.error('tocsin: an answer could not be recorded', error);
      return false;
    }
  }
}

const parentOf = ({ sent: { job } }: CalledJob): Parent => ({ id: job.id, meta: job.meta });

function withVerdict(target: PushTarget, { claimed, isOpen }: CalledJob, outcome: AttemptOutcome): AttemptOutcome {
  if (outcome.kind === 'released' && outcome.release.attempt === 'goes_on') {
    if (!isOpen && target.canTalk) {
      target.keepOpen(claimed.row.type);
      return outcome;
    }
    const message = 'The handler asked for a live connection, which this call had, or which its Worker cannot have.';
    return failed({ code: 'invalid_response', type: 'invalid_response', message, retryable: true });
  }
  if (outcome.kind === 'snoozed' && outcome.runs !== undefined) return { ...outcome, enqueuer: target.config };
  return withNoHandler(target, outcome);
}

/**
 * A Worker that no longer takes a type it announced was deployed again: it is asked again, and the job has no handler.
 */
function withNoHandler(target: PushTarget, outcome: AttemptOutcome): AttemptOutcome {
  if (!target.listsTypes || outcome.kind !== 'failed' || outcome.error.code !== 'handler_not_found') return outcome;
  target.forget();
  return failed({ ...outcome.error, message: 'no handler registered', no_handler: true });
}

/** Settles the attempts of one call, except those that have ended otherwise. Runs inside a transaction. */
function settleDeliveries(q: QueueParts, delivered: readonly Delivered[], now: number, random: Random): void {
  const settlement = new Settlement(q, now, random);
  for (const one of delivered) {
    const { row, active: claimed } = one.claimed;
    const active = q.store.leases.active.get(row.key);
    if (active?.claim !== claimed.claim) {
      settleLate(settlement, one);
      continue;
    }
    for (const [at, message] of (one.children ?? []).entries()) {
      q.store.outbox.post(CHILDREN, `${one.delivery} ${at}`, message, now);
    }
    settlement.settleSurely(row, active, one.outcome);
  }
  settlement.end();
}

/** A success that arrives after its attempt was called timed out still counts while the job waits. */
function settleLate(settlement: Settlement, { claimed, delivery, outcome }: Delivered): void {
  const { q, now } = settlement;
  if (outcome.kind !== 'completed') return;
  const row = rowByKey(q.store, claimed.row.key);
  const attempt = row && lateAttempt(q, row, delivery, now);
  if (attempt) settlement.completeLate(row, attempt, outcome.result);
}

interface Speaker {
  /** While this claim runs nothing changes the job's row. */
  claimed: Pick<Claimed, 'row' | 'active'>;
  delivery: string;
  parent: Parent;
  target: Enqueuer;
}

/**
 * Handles a message of a handler that runs, on a call with a live connection, like a worker's report over HTTP.
 * Messages that arrive together share a transaction.
 * @returns the answer to the handler, once it is durable
 * @throws {ApiError} 409 when the attempt is over; 413; the reasons to refuse an enqueue
 */
async function hear(host: Host, speaker: Speaker, message: RunMessage): Promise<unknown> {
  const { q } = host;
  const { row } = speaker.claimed;
  switch (message.kind) {
    case 'log': {
      const active = mustRun(q, speaker);
      // Kept at once, so that an attempt that ends before the transaction has its last lines.
      q.observed.logs.add(active, message.lines);
      return host.write((now) => tellLog(q, row, active, message.lines.length, now));
    }
    case 'stream':
      return writeStream(host, row, mustRun(q, speaker), message.said);
    case 'enqueue':
      mustRun(q, speaker);
      return enqueue(host, speaker, message.children);
    case 'signal_url': {
      mustRun(q, speaker);
      const rights = readSignalRights({ ...message.asked, job: speaker.parent.id });
      const end = readEnd(message.asked.expires_in, 'tocsin:signal', host.now());
      return signalUrl(q.config.variables.tokens, rights, { end, jti: crypto.randomUUID() });
    }
    case 'progress':
      return asWhoRuns(host, speaker, (active, now) => noteProgress(q, row, active, message, now));
    case 'checkpoint':
      return asWhoRuns(host, speaker, (_, now) => {
        q.store.checkpoints.save(row.key, message.content, now);
      });
    case 'recall':
      return asWhoRuns(host, speaker, () => recall(q, row.key, message.name));
    case 'step':
      return asWhoRuns(host, speaker, (_, now) => {
        // The first result wins: the handler receives it.
        return noteStep(q, row, message, now);
      });
  }
}

/** Runs in the next shared transaction, if the attempt still runs then. */
function asWhoRuns<T>(host: Host, speaker: Speaker, act: (active: Active, now: number) => T): Promise<T> {
  host.about(() => [speaker.claimed.row.key]);
  return host.write((now) => act(mustRun(host.q, speaker), now));
}

/** @throws {ApiError} 409 */
function mustRun(q: Stored, { claimed, delivery }: Speaker): Active {
  const active = q.store.leases.active.get(claimed.row.key);
  if (active?.claim === claimed.active.claim) return active;
  throw conflict(`Delivery ${delivery} is over.`, { delivery_id: delivery, expected_state: 'active' });
}

async function enqueue({ q, others, now }: Host, { target, parent }: Speaker, children: unknown): Promise<unknown> {
  const jobs = await others.enqueue(await childrenOf(target, children, parent, now()));
  const telling = new Telling(q.config.variables.retryVariables);
  return jobs.map((view) => ({ ...telling.envelope(view), ...(view.deduplicated && { deduplicated: true }) }));
}

/** Events that end an attempt other than by its handler's report. */
const TAKEN = new Set(['job.cancelled', 'job.discarded']);

/**
 * The running calls: which one has a job, to notify it when the job is cancelled; and how long the oldest has run, so
 * that this object stays in memory meanwhile.
 *
 * An object without incoming events is evicted after one or two minutes, and waiting for an answer is not an event.
 * Newer runtimes wait for calls under way. So that nothing depends on that, an alarm rings every half minute while an
 * older call runs. Calls that end sooner set none.
 */
export class RunningCalls {
  /** When each began, epoch ms; the oldest first. */
  private readonly began = new Map<Call, number>();
  /** The call of each job; built on first use. */
  private byJob: Map<string, { call: Call; delivery: string }> | undefined;
  /** When an alarm was last set for long calls, epoch ms. */
  private wokenAt = Number.NEGATIVE_INFINITY;
  private unlisten: (() => void) | undefined;

  constructor(private readonly host: Pick<Host, 'q' | 'now' | 'wakeAt'>) {}

  add(call: Call): void {
    this.byJob = undefined;
    this.began.set(call, this.host.now());
    this.unlisten ??= this.host.q.observed.events.listen((events) => {
      for (const { type, subject } of events) if (TAKEN.has(type)) this.taken(subject);
    });
  }

  /** The call is over, or its answer is about to be settled. */
  delete(call: Call): void {
    this.byJob = undefined;
    if (!this.began.delete(call) || this.began.size > 0) return;
    this.unlisten?.();
    this.unlisten = undefined;
  }

  /** A call takes long. From the first alarm on, each alarm sets the next. */
  goesOn(): void {
    const now = this.host.now();
    if (isWithin(this.wokenAt, LONG_CALL_MS, now)) return;
    this.wokenAt = now;
    this.host.wakeAt(now + 1);
  }

  /** When an event must come at the latest, epoch ms; undefined while no long call runs. */
  awakeAt(now: number): number | undefined {
    for (const began of this.began.values()) return isWithin(began, LONG_CALL_MS, now) ? undefined : now + LONG_CALL_MS;
    return undefined;
  }

  private taken(job: string): void {
    this.byJob ??= this.index();
    const found = this.byJob.get(job);
    found?.call.cancel(found.delivery);
  }

  private index(): Map<string, { call: Call; delivery: string }> {
    const byJob = new Map<string, { call: Call; delivery: string }>();
    for (const call of this.began.keys()) {
      for (const { job, delivery_id } of call.deliveries) byJob.set(String(job.id), { call, delivery: delivery_id });
    }
    return byJob;
  }
}
