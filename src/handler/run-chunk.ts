/** Runs the jobs of a chunk in one call of their handler. Outcomes come at their shortest timeout at the latest. */
import { isA } from '../job/thrown';
import { checkedArgs } from './arguments';
import { within } from './around';
import { keptLogger } from './context';
import { CancelledError } from './control';
import { outcomeOfThrown, resultText } from './ended';
import { type Host, PUSHED, timeoutOf } from './host';
import { Journal } from './journal';
import { createLogger } from './log';
import { OutcomeError } from './outcomes';
import type { DeliveryOutcome, HandlerDelivery, Outcome } from './protocol';
import type { ChunkHandler, Registration, Registry } from './registry';
import { RunSignal } from './run-signal';
import { TimeLimit } from './time-limit';
import type { BatchContext, HandlerContext, Job } from './types';
import { withinLimits } from './within-limits';

/** What belongs to a single job, and what to do instead. */
const REFUSED = [
  ...(['step', 'sleep', 'sleepUntil', 'waitFor', 'run', 'runAll', 'progress', 'checkpoint'] as const),
  ...(['stream', 'pipe'] as const),
  ...(['enqueue', 'enqueueMany'] as const),
];

/** The handler did not return what a chunked handler returns. */
export class InvalidResultsError extends OutcomeError {}

/** A job of the chunk, and what is known of its end. */
interface Member {
  delivery: HandlerDelivery;
  job: Job;
  thrown?: { thrown: unknown };
}

/** Runs jobs of one handler together. Never rejects. @returns their outcomes, in order */
export async function runChunk(
  deliveries: readonly HandlerDelivery[],
  registration: Registration,
  registry: Registry,
  host: Host,
): Promise<DeliveryOutcome[]> {
  const limit = Math.min(...deliveries.map((delivery) => timeoutOf(delivery, registration, host.limits ?? PUSHED)));
  const chunk = new ChunkRun(deliveries, registration, registry, host, limit);
  return await chunk.run();
}

class ChunkRun {
  private readonly members: Member[];
  private readonly journal = new Journal();
  readonly aborter: RunSignal;
  readonly time: TimeLimit;
  private readonly handler: ChunkHandler;
  private isOpen = true;
  private stop: (reason: Error) => void = () => undefined;

  constructor(
    deliveries: readonly HandlerDelivery[],
    readonly registration: Registration,
    private readonly registry: Registry,
    readonly host: Host,
    limit: number,
  ) {
    this.members = deliveries.map((delivery) => ({ delivery, job: delivery.job }));
    this.aborter = new RunSignal(host.call);
    this.handler = registration.chunk as ChunkHandler;
    this.time = new TimeLimit(limit, `The jobs did not finish within ${limit} ms.`);
  }

  async run(): Promise<DeliveryOutcome[]> {
    const ctx = this.context();
    const results = new Map<Member, unknown>();
    let thrown: { thrown: unknown } | undefined;
    try {
      await this.checkArguments();
      const called = this.members.filter((member) => !member.thrown);
      const returned = called.length > 0 ? resultsIn(await this.called(called, ctx), called.length) : [];
      for (const [at, member] of called.entries()) results.set(member, returned[at]);
    } catch (error) {
      thrown = { thrown: error };
    }
    this.isOpen = false;
    const outcomes: Promise<DeliveryOutcome>[] = this.members.map((member) =>
      this.outcomeOf(member, member.thrown ?? thrown, results.get(member), ctx),
    );
    const all = await Promise.all(outcomes);
    const log = this.journal.take();
    if (log.length > 0 && all[0]) all[0].log = log;
    return all;
  }

  /** Jobs whose arguments are not what the handler takes fail by themselves, and do not reach it. */
  private async checkArguments(): Promise<void> {
    const { args } = this.handler;
    if (!args) return;
    await Promise.all(
      this.members.map(async (member) => {
        try {
          member.job = await checkedArgs(args, member.job);
        } catch (error) {
          member.thrown = { thrown: error };
        }
      }),
    );
  }

  private async outcomeOf(
    { delivery }: Member,
    failure: { thrown: unknown } | undefined,
    result: unknown,
    ctx: HandlerContext,
  ): Promise<Outcome> {
    const { host, registration, registry, time } = this;
    const { job, attempt, deliveryId } = delivery;
    const bound = { job_id: job.id, type: job.type, attempt, delivery_id: deliveryId };
    const log = () => createLogger(host.sink, bound);
    try {
      if (failure) throw failure.thrown;
      const text = resultText(result);
      return text === undefined ? { status: 'completed' } : { status: 'completed', result: text };
    } catch (thrown) {
      const parts = { delivery, registration, registry, host, log, journal: { add: () => undefined } };
      const own = Object.create(ctx, { job: { value: job }, attempt: { value: attempt } }) as HandlerContext;
      return await outcomeOfThrown(thrown, { ...parts, ctx: own, deadline: time.deadline });
    }
  }

  private called(members: readonly Member[], ctx: HandlerContext & BatchContext): Promise<unknown> {
    const { run } = this.handler;
    const jobs = members.map(({ job }) => job);
    const handler = within(this.registry.around.use ?? [], async () => await run(jobs, ctx));
    const listen = (stop: (reason: Error) => void) => {
      this.stop = stop;
      return this.members.map((member) =>
        this.host.control?.onCancel(member.delivery.deliveryId, (reason) => this.cancel(member, reason)),
      );
    };
    return withinLimits(this, listen, async () => await handler(jobs[0] as Job, ctx, (own) => own));
  }

  /** The handler runs on for the others; without any it is stopped. */
  private cancel(member: Member, reason: CancelledError): void {
    member.thrown = { thrown: reason };
    if (this.members.every(({ thrown }) => thrown && isA(thrown.thrown, CancelledError))) this.stop(reason);
  }

  private fail(job: unknown, error: unknown): void {
    if (!this.isOpen) throw new Error('ctx.fail: the run has ended');
    const id: unknown = typeof job === 'object' && job !== null ? Reflect.get(job, 'id') : undefined;
    const member = this.members.find(({ delivery }) => delivery.job.id === id);
    if (!member) throw new TypeError('ctx.fail: the first argument must be one of the jobs of this call');
    member.thrown ??= { thrown: error };
  }

  private context(): HandlerContext & BatchContext {
    const { host, aborter, journal, members, time } = this;
    const [first] = members as [Member];
    const { type } = first.delivery.job;
    const { draining = new RunSignal() } = host;
    const bound = { type, jobs: members.length, job_id: first.delivery.job.id };
    const refuse = (verb: string) => () => {
      throw new TypeError(
        `ctx.${verb}: a chunked handler has no ${verb}, because that belongs to a single job; use a handler of one job.`,
      );
    };
    const ctx = {
      job: first.delivery.job,
      attempt: first.delivery.attempt,
      deliveryId: first.delivery.deliveryId,
      env: host.env,
      log: keptLogger({ sink: host.sink, bound, journal, isOpen: () => this.isOpen }),
      waitUntil: (promise: Promise<unknown>) => host.executionCtx?.waitUntil(promise),
      fail: (job: unknown, error: unknown) => this.fail(job, error),
      get signal() {
        time.check();
        return aborter.signal;
      },
      get draining() {
        return draining.signal;
      },
      ...Object.fromEntries(REFUSED.map((verb) => [verb, refuse(verb)])),
    };
    return ctx as unknown as HandlerContext & BatchContext;
  }
}

/** The results, one for each job, or none. @throws {InvalidResultsError} which fails all jobs */
function resultsIn(returned: unknown, jobs: number): readonly unknown[] {
  if (returned === undefined || returned === null) return [];
  const wanted = `A chunked handler returns a list with a result for each of its ${jobs} jobs, or nothing`;
  const wrong = (got: string) =>
    new InvalidResultsError(`${wanted}; it returned ${got}.`, {}, { type: 'tocsin.invalid_results' });
  if (!Array.isArray(returned)) throw wrong(`a value of type ${typeof returned}`);
  if (returned.length !== jobs) throw wrong(`a list of ${returned.length}`);
  return returned;
}
