/** What a handler gets beside its job: `ctx`, whichever way the job came. */

import { messageOf } from '../job/thrown';
import type { JobEnvelope } from '../producer/envelope';
import type { JobOptions, NewJob } from '../producer/job';
import { type ChildParts, childOf, childrenOf, runAllOf, runOf } from './children';
import { requireDuration } from './duration';
import type { Host } from './host';
import { type Journal, logEntry } from './journal';
import { createLogger, type Logger } from './log';
import { turn } from './pauses';
import { requireName } from './step-rules';
import type { Steps } from './steps';
import { jsonCopy } from './text';
import type { TimeLimit } from './time-limit';
import type { HandlerContext, RunAllOptions, RunChildOptions, SignalUrlOptions } from './types';
import type { ChildJob, Voice } from './voice';

export interface ContextParts extends ChildParts, Pick<Host, 'env' | 'executionCtx' | 'sink'> {
  aborter: { readonly signal: AbortSignal };
  draining: { readonly signal: AbortSignal };
  /** The members that every line of the sink carries. */
  bound: Record<string, unknown>;
  journal: Journal;
  steps: Steps;
  voice: Voice;
  time: Pick<TimeLimit, 'check' | 'isUp'>;
  /** False once the answer is given. */
  isOpen: () => boolean;
}

/** What a sum of fractions may be beside the range of progress. */
const ROUNDING = 1e-9;

const ABORTER = Symbol('aborter');
const DRAINING = Symbol('draining');
const TIME = Symbol('time');

/** Read when a handler asks for them. Shared, because functions of its own would give each context another shape. */
const SIGNALS: PropertyDescriptorMap = {
  signal: {
    get(this: { [ABORTER]: ContextParts['aborter']; [TIME]: ContextParts['time'] }) {
      this[TIME].check();
      return this[ABORTER].signal;
    },
    enumerable: true,
    configurable: true,
  },
  draining: {
    get(this: { [DRAINING]: ContextParts['draining'] }) {
      return this[DRAINING].signal;
    },
    enumerable: true,
    configurable: true,
  },
};

export function contextOf(parts: ContextParts): HandlerContext {
  const { delivery, voice, steps, time } = parts;
  /** A call that the handler need not await: an unhandled refusal must not end the process. */
  const call =
    <Args extends unknown[], T>(verb: string, run: (...args: Args) => Promise<T>) =>
    (...args: Args): Promise<T> => {
      const refusal = time.check() ?? (parts.isOpen() ? undefined : ended(verb, args));
      const begin = (): Promise<T> => (refusal ? Promise.reject(refusal) : run(...args));
      // A handler that continues anyway lets others run.
      const said = refusal || time.isUp ? turn().then(begin) : begin();
      // Not by `catch`, which a sleep would take for being awaited.
      Promise.prototype.then.call(said, undefined, () => undefined);
      return said;
    };
  /** A call to the queue, which keeps the run open. */
  const say = <Args extends unknown[], T>(verb: string, run: (...args: Args) => Promise<T>) =>
    call<Args, T>(verb, (...args) => steps.during(run(...args)));
  const enqueue = async (children: readonly ChildJob[]): Promise<JobEnvelope[]> => {
    if (children.length === 0) return [];
    if (voice.durable === 'never') await steps.needLine();
    return await voice.enqueue(children);
  };
  const context: Omit<HandlerContext, 'signal' | 'draining'> &
    Record<typeof ABORTER | typeof DRAINING | typeof TIME, unknown> = {
    [ABORTER]: parts.aborter,
    [DRAINING]: parts.draining,
    [TIME]: time,
    job: delivery.job,
    attempt: delivery.attempt,
    deliveryId: delivery.deliveryId,
    env: parts.env,
    log: keptLogger(parts),
    waitUntil: (promise) => parts.executionCtx?.waitUntil(promise),
    progress: say('progress', async (fraction: number, message?: string, data?: Record<string, unknown>) => {
      if (typeof fraction !== 'number' || !(fraction >= -ROUNDING && fraction <= 1 + ROUNDING)) {
        throw new TypeError(
          `ctx.progress: ${messageOf(fraction)} is not a number from 0 to 1; divide a percentage by 100`,
        );
      }
      const more = jsonCopy({ message, data }, 'ctx.progress: the report') as object;
      await voice.progress({ progress: Math.min(1, Math.max(0, fraction)), ...more });
    }),
    checkpoint: say('checkpoint', async (state: unknown) => {
      const copy = jsonCopy(state, 'ctx.checkpoint: the state');
      if (copy === undefined) throw new TypeError('ctx.checkpoint: the state is undefined; use null');
      if (voice.durable === 'never') await steps.needLine();
      await voice.checkpoint(copy);
    }),
    enqueue: say('enqueue', async (type: string, args: readonly unknown[], options: JobOptions = {}) => {
      const [job] = await enqueue([childOf(parts, 'enqueue', { type, args, options })]);
      return job;
    }) as HandlerContext['enqueue'],
    enqueueMany: say(
      'enqueueMany',
      async (jobs: readonly NewJob[]) => await enqueue(childrenOf(parts, 'enqueueMany', jobs)),
    ),
    stream: (name) => {
      const refusal = time.check() ?? (parts.isOpen() ? undefined : ended('stream', [name]));
      if (refusal) throw refusal;
      // Each write ends this run, which another one with an open call repeats.
      if (voice.durable === 'never') return { write: () => steps.needLine(), flush: async () => undefined };
      if (!voice.stream) throw new TypeError('ctx.stream: the target of this job cannot write streams');
      return steps.streams.open(name);
    },
    pipe: say('pipe', async (name: string, chunks: Parameters<HandlerContext['pipe']>[1]) => {
      if (voice.durable === 'never') await steps.needLine();
      await steps.streams.pipe(name, chunks);
    }),
    step: call('step', steps.step) as HandlerContext['step'],
    sleep: call('sleep', steps.waits.sleep),
    sleepUntil: call('sleepUntil', steps.waits.sleepUntil),
    waitFor: call('waitFor', steps.waits.waitFor) as HandlerContext['waitFor'],
    run: call('run', (name: string, type: string, args: readonly unknown[], options: RunChildOptions = {}) =>
      steps.waits.run(runOf(parts, name, { type, args, options })),
    ) as HandlerContext['run'],
    runAll: call('runAll', (name: string, jobs: readonly NewJob[], options: RunAllOptions = {}) =>
      steps.waits.run(runAllOf(parts, name, jobs, options)),
    ) as HandlerContext['runAll'],
    signalUrl: call('signalUrl', async (name: string, options: SignalUrlOptions) => {
      const { choices, title, expires } = options ?? {};
      requireName('signalUrl', name, MAX_SIGNAL_NAME);
      const asked = { signal: name, choices, title, expires_in: requireDuration(expires, 'ctx.signalUrl: expires') };
      return await steps.step(`url:${name}`, () => {
        if (voice.signalUrl) return voice.signalUrl(asked);
        throw new TypeError('ctx.signalUrl: the target of this job cannot ask the queue while it runs');
      });
    }),
  };
  return Object.defineProperties(context, SIGNALS) as typeof context & HandlerContext;
}

/** Longest name of a signal with a URL, in characters: that of its step begins with `url:`. */
const MAX_SIGNAL_NAME = 124;

/** Lines go to the sink at once, and to the queue with the job. */
export const keptLogger = ({
  sink,
  bound,
  journal,
  isOpen,
}: Pick<ContextParts, 'sink' | 'bound' | 'journal' | 'isOpen'>): Logger =>
  createLogger(sink, bound, (level, message, fields) => {
    if (isOpen()) journal.add(logEntry(Date.now(), level, message, fields));
  });

const ended = (verb: string, [name]: readonly unknown[]): Error =>
  new Error(`ctx.${verb}: the run has ended${typeof name === 'string' ? `; "${name}" was not started` : ''}`);
