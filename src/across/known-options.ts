/**
 * Options that a queue's object may not know for minutes after a deploy, and would drop. Such jobs go only to objects
 * with the verb that came with the option; asking for a verb calls nothing.
 */
import type { Env } from '../config';
import { onEmptied } from '../durable/memory';
import { inParallel } from '../durable/parallel';
import { OTHER_VERSION, passing } from '../durable/platform-errors';
import { ApiError } from '../job/errors';
import { scopeOf } from '../job/limits/policy';
import type { NewJob } from '../job/record';
import type { QueueApi } from '../rpc/queue';
import { hasVerb } from '../rpc/stubs';

interface LaterOption {
  option: string;
  /** The verb of a queue that came with it. An option without one gets a verb for that. */
  cameWith: keyof QueueApi;
  isIn(job: Pick<NewJob, 'limit' | 'steps' | 'parts' | 'awaited'>): boolean;
  /** {@link LaterOption.isIn} for jobs as JSON text; it may match too many. */
  isInText: RegExp;
}

const LATER: readonly LaterOption[] = [
  {
    option: 'rate_limit.scope',
    cameWith: 'deskCalls',
    isIn: ({ limit }) => limit !== undefined && scopeOf(limit.key) === 'deployment',
    isInText: /"scope"\s*:\s*"deployment"/,
  },
  {
    option: 'from',
    cameWith: 'restart',
    isIn: ({ steps }) => steps !== undefined,
    // No job as JSON text has steps: only a fork does.
    isInText: /(?!)/,
  },
  { option: 'from', cameWith: 'stepParts', isIn: ({ parts }) => parts !== undefined, isInText: /(?!)/ },
  {
    option: 'runs',
    cameWith: 'runsEnded',
    isIn: ({ awaited }) => awaited === true,
    // Only the handler of a job asks for these.
    isInText: /(?!)/,
  },
];

/** Queues that were found to have a verb; one deploy only adds verbs. The oldest go first. */
const found = new Set<string>();
const MAX_FOUND = 1_000;
onEmptied(() => found.clear());

/** @throws {ApiError} 503 while the object of a queue does not know an option of a job for it */
export async function refuseUnknownOptions(
  env: Env,
  entries: readonly { queue: string; job: Pick<NewJob, 'limit' | 'steps' | 'parts'> }[],
): Promise<void> {
  for (const later of LATER) {
    const having = entries.filter(({ job }) => later.isIn(job));
    if (having.length === 0) continue;
    await inParallel([...new Set(having.map(({ queue }) => queue))], (queue) => refuseUnknown(env, queue, later));
  }
}

/** {@link refuseUnknownOptions} for jobs as JSON text. @throws {ApiError} 503 */
export async function refuseUnknownOptionsIn(env: Env, queue: string, text: string): Promise<void> {
  for (const later of LATER) if (later.isInText.test(text)) await refuseUnknown(env, queue, later);
}

async function refuseUnknown(env: Env, queue: string, { option, cameWith }: LaterOption): Promise<void> {
  const key = `${cameWith} ${queue}`;
  if (found.has(key)) return;
  if (!(await hasVerb(env, queue, cameWith))) {
    const { data } = passing(`Queue ${queue} still runs a version that does not know ${option}.`, OTHER_VERSION);
    throw new ApiError({ ...data, details: { ...data.details, queue, option } });
  }
  found.add(key);
  if (found.size > MAX_FOUND) found.delete(found.values().next().value as string);
}
