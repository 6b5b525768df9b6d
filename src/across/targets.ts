/** Targets over many queues, gathered on request: each queue decides for itself whether a handler takes its calls. */
import { type Config, type Env, readConfig } from '../config';
import { inParallel } from '../durable/parallel';
import { notFound } from '../job/errors';
import { queueObject } from '../rpc/stubs';
import type { TargetView } from '../rpc/targets';
import { nextQueues, queuesOf } from './queues';

type TargetConfig = Config['targets'][number];

export interface TargetInQueue extends TargetView {
  queue: string;
}

export interface KnownTarget {
  name: string;
  /** One for each set of options under which it is mapped. */
  configs: TargetConfig[];
  /** The queues that were asked and can push to it, in the order of their names. */
  queues: TargetInQueue[];
}

export interface GatheredTargets {
  targets: KnownTarget[];
  /** How many queues were asked, and those of them that did not answer. */
  asked: number;
  unreachable: string[];
  /** The last of the queues that were asked, when there are more. */
  after?: string;
}

/** The targets as the next queues see them. @param name only this target @throws {ApiError} 404 when there is none */
export async function gatherTargets(
  env: Env,
  { name, named, after }: { name?: string; named?: readonly string[] | undefined; after?: string | undefined },
): Promise<GatheredTargets> {
  const configs = name === undefined ? readConfig(env).targets : targetsNamed(env, name);
  const { names, more } = await nextQueues(env, after, named);
  const unreachable: string[] = [];
  const answers = await inParallel(names, async (queue) => {
    try {
      return (await queueObject(env, queue).targets()).map((view) => ({ ...view, queue }));
    } catch (error) {
      console.error(`tocsin: queue ${queue} could not report its targets`, error);
      unreachable.push(queue);
      return [];
    }
  });
  const views = answers.flat();
  const targets = [...Map.groupBy(configs, (config) => config.name)].map(([target, own]) => ({
    name: target,
    configs: own,
    queues: views.filter((view) => view.name === target),
  }));
  const last = names.at(-1);
  return { targets, asked: names.length, unreachable, ...(more && last !== undefined && { after: last }) };
}

/**
 * Tries a target in every queue that has paused or stopped it. @param named only in these queues
 * @returns how many queues were asked, and those that tried it, as they see it afterwards
 * @throws {ApiError} 404 when there is no target of this name; 422 when there are too many queues to ask them all
 */
export async function resumeTarget(
  env: Env,
  name: string,
  named: readonly string[] | undefined,
): Promise<{ asked: number; tried: TargetInQueue[] }> {
  targetsNamed(env, name);
  const queues = await queuesOf(env, { queues: named });
  const tried = await inParallel(queues, async (queue) =>
    (await queueObject(env, queue).resumeTarget(name)).map((view) => ({ ...view, queue })),
  );
  return { asked: queues.length, tried: tried.flat() };
}

function targetsNamed(env: Env, name: string): TargetConfig[] {
  const found = readConfig(env).targets.filter((target) => target.name === name);
  if (found.length > 0) return found;
  throw notFound('target', name, 'GET /ojs/v1/targets lists the targets of this deployment.');
}
