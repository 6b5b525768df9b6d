/** Changes of a job that waits, as a producer writes them. */

import type { OptionsThat } from '../job/options';
import type { Duration, RetentionOptions, RetryPolicy } from '../producer/envelope';
import { type Moment, momentText, relativeText, type StepOptions } from '../producer/job';
import { refuseUnknown } from '../producer/known';
import type { Camel } from '../producer/names';
import { type ClientOption, clientOptionsThat } from '../producer/options';
import { invalid } from './requests';

/** Members replace those of the job's own policy, `null` removes them (`maxInterval: null`: no cap). */
export type RetryChange = { [K in keyof RetryPolicy]?: RetryPolicy[K] | null };

type Start =
  | {
      /** Start at the earliest after this time. */
      delay?: Duration;
      delayUntil?: never;
    }
  | {
      /** Start at the earliest at this moment; `null`: as soon as possible. */
      delayUntil?: Moment | null;
      delay?: never;
    };

type Runs =
  | { retry?: RetryChange | null; maxAttempts?: never }
  | { retry?: (RetryChange & { maxAttempts?: never }) | null; maxAttempts?: number | null };

type Replaced = Pick<
  StepOptions,
  Exclude<Camel<OptionsThat<'patch'>> & ClientOption, keyof Start | keyof Runs | 'retention'>
>;

/** What to change about a waiting job. Members left out stay; `null` returns one to its default. */
export type JobPatch = Start &
  Runs & { [Name in keyof Replaced]?: Replaced[Name] | null } & {
    /** Members replace those of the job's own retention; `null` goes back to its queue's. */
    retention?: { [K in keyof RetentionOptions]?: RetentionOptions[K] | null } | null;
  };

const CHANGEABLE = clientOptionsThat('patch');
const PATCH: ReadonlySet<string> = new Set(['delay', ...CHANGEABLE]);
const MOMENTS: ReadonlySet<string> = new Set(clientOptionsThat('moment'));

/** The change as the server reads it. @throws {InvalidJobError} @throws {TypeError} for a member that does not exist */
export function wirePatch(change: JobPatch): Record<string, unknown> {
  refuseUnknown(change, PATCH, 'A change of a job has no');
  const { delay, delayUntil }: { delay?: Duration; delayUntil?: Moment | null } = change;
  // Only untyped code sets both.
  if (delay !== undefined && delayUntil !== undefined) throw invalid('Use delay or delayUntil, not both.', 'delay');
  const wire: Record<string, unknown> = {};
  for (const name of CHANGEABLE) {
    const value = change[name];
    wire[name] = MOMENTS.has(name) && value !== null ? momentText(value as Moment | undefined, name) : value;
  }
  return delay === undefined ? wire : { ...wire, delayUntil: relativeText(delay) };
}
