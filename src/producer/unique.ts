/** Unique policies as a producer writes them, in every spelling; members that contradict each other do not compile. */

import type { JobState } from '../job/states';
import type { Duration } from './envelope';

/** A part of a job that may make it the same as another. */
export type UniqueDimension = 'type' | 'queue' | 'args' | 'meta';

type WithoutMeta = readonly Exclude<UniqueDimension, 'meta'>[];

/** What makes two jobs the same. `meta` counts by its members only. */
type Counted =
  | {
      keys?: never;
      /** Members of `meta` that count. */
      metaKeys?: readonly string[];
    }
  | {
      /**
       * What makes two jobs the same; `type` always does. Without `queue`, jobs of all queues count. Default
       * `["type"]`.
       */
      keys: WithoutMeta;
      metaKeys?: never;
    }
  | { keys: readonly UniqueDimension[]; metaKeys: readonly string[] };

type Identity =
  | ({
      /** Your own key in place of arguments; 1 … 255 characters. */
      key?: string;
    } & Counted)
  /** A list in `key` is another spelling of `keys`. */
  | { key: WithoutMeta; keys?: never; metaKeys?: never }
  | { key: readonly UniqueDimension[]; keys?: never; metaKeys: readonly string[] };

type Period =
  | {
      /** How long after its creation an existing job counts. Default: as long as its state counts. */
      period?: Duration;
      within?: never;
    }
  | {
      /** Another spelling of `period`. */
      within: Duration;
      period?: never;
    };

type States =
  | {
      /** States in which an existing job counts. Default: those in which it has not ended. */
      states?: readonly JobState[];
      uniqueWhile?: never;
    }
  | {
      /** In place of `states`: not yet running; not yet ended; until it is removed. */
      uniqueWhile: 'queued' | 'active' | 'exists';
      states?: never;
    };

/** Avoids a second job that does the same. */
export type UniqueOptions = Identity &
  Period &
  States & {
    /** Members of the objects in `args` that count; the others may differ. */
    argsKeys?: readonly string[];
    /** Default `reject`: {@link DuplicateJobError}. With `ignore` the existing job is returned, `deduplicated`. */
    onConflict?: 'reject' | 'ignore' | 'ignore_new' | 'replace' | 'cancel_existing' | 'replace_except_schedule';
  };
