/** Defaults of a registered job type: they apply where the enqueue sets nothing. */
import { own } from '../job/own';
import type { Duration } from './envelope';
import type { JobOptions } from './job';
import { namesOf } from './known';
import type { UniqueOptions } from './unique';

/** Options of jobs of a type that do not set their own. */
export interface EnqueueDefaults {
  queue?: string | undefined;
  /** −100 … 100, higher first. */
  priority?: number | undefined;
  tags?: readonly string[] | undefined;
  /** Not for jobs of workflows. */
  unique?: UniqueOptions | undefined;
  /** Not for jobs that name a `delay` or `delayUntil`. */
  delay?: Duration | undefined;
}

export const DEFAULT_NAMES = namesOf<EnqueueDefaults>({
  queue: true,
  priority: true,
  tags: true,
  unique: true,
  delay: true,
});

/** What is registered for a type; undefined: nothing. */
export type DefaultsOf = (type: string) => EnqueueDefaults | undefined;

/** The options with the defaults of their job's type. @param except defaults that do not apply */
export function withDefaults<Options extends JobOptions>(
  options: Options,
  defaults: EnqueueDefaults | undefined,
  except: readonly string[] = [],
): Options {
  if (defaults === undefined) return options;
  const chosen: Record<string, unknown> = { ...options };
  const hasStart = chosen.delay !== undefined || chosen.delayUntil !== undefined;
  for (const [name, value] of Object.entries(defaults)) {
    if (own(chosen, name) !== undefined || except.includes(name) || (name === 'delay' && hasStart)) continue;
    chosen[name] = value;
  }
  return chosen as Options;
}
