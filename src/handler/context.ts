/** What a handler gets beside its job: `ctx`, whichever way the job came. */

import { type DefaultsOf, withDefaults } from '../producer/defaults';
import type { Duration } from '../producer/envelope';
import { wireJob } from '../producer/job';
import { wired } from '../producer/names';
import { type Journal, logEntry } from './journal';
import { createLogger, type Logger, type LogSink } from './log';
import type { HandlerDelivery } from './protocol';
import type { Steps } from './steps';
import { jsonCopy } from './text';
import type { ExecutionContextLike, HandlerContext, Job } from './types';
import type { ChildJob, Voice } from './voice';

/** What a context is made of. */
export interface ContextParts {
  delivery: HandlerDelivery;
  env: unknown;
  executionCtx: ExecutionContextLike | undefined;
  /** Gives the signal. */
  aborter: { readonly signal: AbortSignal };
  /** Gives that which says that the worker ends. */
  draining: { readonly signal: AbortSignal };
  sink: LogSink;
  /** The members that every line of the sink carries. */
  bound: Record<string, unknown>;
  journal: Journal;
  steps: Steps;
  voice: Voice;
  /** What is registered for the types of jobs that it enqueues. */
  defaultsOf: DefaultsOf;
  /** False once the answer is given. */
  isOpen: () => boolean;
}

/** What a sum of fractions may be beside the range of progress. */
const ROUNDING = 1e-9;

/** Give the signals of a context. */
const ABORTER = Symbol('aborter');
const DRAINING = Symbol('draining');

/**
 * The members `signal` and `draining`, read when a handler asks for them. All contexts have their functions in common:
 * with functions of their own they would be of as many shapes, which costs the engine more than signals do.
 */
const SIGNALS: PropertyDescriptorMap = {
  signal: {
    get(this: { [ABORTER]: ContextParts['aborter'] }) {
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
  const { delivery, voice, steps } = parts;
  const requireOpen = (verb: string): void => {
    if (!parts.isOpen()) throw new Error(`ctx.${verb}: the run has ended`);
  };
  const context: Omit<HandlerContext, 'signal' | 'draining'> & Record<typeof ABORTER | typeof DRAINING, unknown> = {
    [ABORTER]: parts.aborter,
    [DRAINING]: parts.draining,
    job: delivery.job,
    attempt: delivery.attempt,
    deliveryId: delivery.deliveryId,
    env: parts.env,
    log: keptLogger(parts),
    waitUntil: (promise) => parts.executionCtx?.waitUntil(promise),
    progress: quietly(async (fraction: number, message?: string, data?: Record<string, unknown>) => {
      requireOpen('progress');
      if (typeof fraction !== 'number' || !(fraction >= -ROUNDING && fraction <= 1 + ROUNDING)) {
        throw new TypeError(
          `ctx.progress: ${String(fraction)} is not a number from 0 to 1; divide a percentage by 100`,
        );
      }
      const more = jsonCopy({ message, data }, 'ctx.progress: the report') as object;
      await voice.progress({ progress: Math.min(1, Math.max(0, fraction)), ...more });
    }),
    checkpoint: quietly(async (state: unknown) => {
      requireOpen('checkpoint');
      const copy = jsonCopy(state, 'ctx.checkpoint: the state');
      if (copy === undefined) throw new TypeError('ctx.checkpoint: the state is undefined; use null');
      if (voice.durable === 'never') await steps.needLine();
      await voice.checkpoint(copy);
    }),
    enqueue: quietly(async (type: string, args: readonly unknown[], options = {}) => {
      requireOpen('enqueue');
      const child = childOf(
        delivery.job,
        wireJob(type, args, withDefaults(options, parts.defaultsOf(type))),
        options.id,
      );
      if (voice.durable === 'never') await steps.needLine();
      return await voice.enqueue(child);
    }) as HandlerContext['enqueue'],
    step: quietly(steps.step) as HandlerContext['step'],
    sleep: quietly(steps.sleep) as (name: string, duration: Duration) => Promise<void>,
    waitFor: quietly(steps.waitFor) as HandlerContext['waitFor'],
  };
  return Object.defineProperties(context, SIGNALS) as typeof context & HandlerContext;
}

/** A job that a handler enqueues: it names the job that made it, and belongs to the same trace. */
function childOf(parent: Job, wire: Record<string, unknown>, id: string | undefined): ChildJob {
  const { traceparent } = parent.meta;
  const meta = { ...(traceparent !== undefined && { traceparent }), ...(wire.meta as object), parent_id: parent.id };
  return jsonCopy(wired({ id, ...wire, meta }), 'ctx.enqueue: the job') as ChildJob;
}

/** Lines go to the sink at once, and to the queue with the job. */
function keptLogger({ sink, bound, journal, isOpen }: ContextParts): Logger {
  return createLogger(sink, bound, (level, message, fields) => {
    if (isOpen()) journal.add(logEntry(Date.now(), level, message, fields));
  });
}

/** A handler need not await what it says: a refusal that no one looks at must not end the process. */
function quietly<Args extends unknown[], T>(say: (...args: Args) => Promise<T>): (...args: Args) => Promise<T> {
  return (...args) => {
    const said = say(...args);
    said.catch(() => undefined);
    return said;
  };
}
