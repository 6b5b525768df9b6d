/** The jobs that a handler makes: those that it enqueues, and those that it waits for. */
import { messageOf } from '../job/thrown';
import { type DefaultsOf, withDefaults } from '../producer/defaults';
import { type NewJob, refuseBeside, wireJob } from '../producer/job';
import { wired } from '../producer/names';
import type { HandlerDelivery } from './protocol';
import { jobOptionsOf, type Run, readRun, readRunAll, requestOf } from './runs';
import { jsonCopy } from './text';
import type { ChildOutcome, RunAllOptions, RunChildOptions } from './types';
import type { ChildJob } from './voice';

export interface ChildParts {
  delivery: HandlerDelivery;
  /** What is registered for the types of jobs that it enqueues. */
  defaultsOf: DefaultsOf;
}

/** Most jobs of one call, and most bytes of their JSON. */
const MAX_CHILDREN = 1_000;
const MAX_CHILDREN_BYTES = 1_048_576;

/** Defaults of a type that do not apply to a job that is waited for. */
const NOT_IN_RUNS = ['unique'];

/** @throws {TypeError} for anything but a list of jobs, and for too many or too large ones */
export function childrenOf(
  parts: ChildParts,
  verb: string,
  jobs: readonly NewJob[],
  child: typeof childOf = childOf,
): ChildJob[] {
  if (!Array.isArray(jobs)) throw new TypeError(`ctx.${verb}: pass a list of { type, args, options }`);
  if (jobs.length > MAX_CHILDREN) {
    throw new TypeError(`ctx.${verb}: ${jobs.length} jobs; a call takes at most ${MAX_CHILDREN}`);
  }
  // A list may have gaps.
  const children = Array.from(jobs, (job, at) => {
    if (typeof job !== 'object' || job === null) {
      throw new TypeError(`ctx.${verb}: [${at}] is ${messageOf(job)}; pass a list of { type, args, options }`);
    }
    refuseBeside(job);
    return child(parts, verb, job);
  });
  const bytes = new TextEncoder().encode(JSON.stringify(children)).length;
  if (bytes <= MAX_CHILDREN_BYTES) return children;
  throw new TypeError(`ctx.${verb}: ${bytes} bytes of jobs; a call takes at most ${MAX_CHILDREN_BYTES}`);
}

/** A job that a handler enqueues: it names the job that made it, and belongs to the same trace. */
export function childOf(
  { delivery, defaultsOf }: ChildParts,
  verb: string,
  { type, args, options = {} }: NewJob,
  except: readonly string[] = [],
): ChildJob {
  const wire = wireJob(type, args, withDefaults(options, defaultsOf(type), except));
  const parent = delivery.job;
  const { traceparent } = parent.meta;
  const meta = { ...(traceparent !== undefined && { traceparent }), ...(wire.meta as object), parent_id: parent.id };
  return jsonCopy(wired({ id: options.id, ...wire, meta }), `ctx.${verb}: the job`) as ChildJob;
}

const runChildOf: typeof childOf = (parts, verb, { options = {}, ...job }) =>
  childOf(parts, verb, { ...job, options: jobOptionsOf(`ctx.${verb}: ${job.type}`, options) }, NOT_IN_RUNS);

export function runOf<T>(
  parts: ChildParts,
  name: string,
  { options, ...job }: NewJob & { options: RunChildOptions },
): Run<T> {
  const verb = 'run';
  const request = () => {
    const { timeout, detached, ...own } = options;
    return requestOf({ verb, name }, [runChildOf(parts, verb, { ...job, options: own })], { timeout, detached });
  };
  return { verb, name, request, read: (ended) => readRun<T>(name, ended) };
}

export function runAllOf<T>(
  parts: ChildParts,
  name: string,
  jobs: readonly NewJob[],
  options: RunAllOptions,
): Run<ChildOutcome<T>[]> {
  const verb = 'runAll';
  const request = () => requestOf({ verb, name }, childrenOf(parts, verb, jobs, runChildOf), options);
  return { verb, name, request, read: (ended) => readRunAll<T>(name, options, ended) };
}
