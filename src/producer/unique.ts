/** Unique policies as a producer writes them, in every spelling; members that contradict each other do not compile. */

import type { JobState } from '../job/states';
import type { Duration } from './envelope';

/** A part of a job that may make it the same as another. */
export type UniqueDimension = 'type' | 'queue' | 'args' | 'meta';

type WithoutMeta = readonly Exclude<UniqueDimension, 'meta'>[];

/** What makes two jobs the same. `meta` counts by its members only. */
type Counted =
  | {
      keys?: undefined;
      /** Members of `meta` that count. */
      metaKeys?: readonly string[] | undefined;
    }
  | {
      /**
       * What makes two jobs the same; `type` always does. Without `queue`, jobs of all queues count. Default
       * `["type"]`.
       */
      keys: WithoutMeta;
      metaKeys?: undefined;
    }
  | { keys: readonly UniqueDimension[]; metaKeys: readonly string[] };

type Identity =
  | ({
      /** Your own key in place of arguments; 1 … 255 characters. */
      key?: string | undefined;
    } & Counted)
  /** A list in `key` is another spelling of `keys`. */
  | { key: WithoutMeta; keys?: never; metaKeys?: never }
  | { key: readonly UniqueDimension[]; keys?: never; metaKeys: readonly string[] };

/** How often the same job runs. */
type Sampled = {
  /** Which enqueue of a period runs: the first, or the last at its end. Replaces `onConflict` and `states`. */
  sample: 'leading' | 'trailing';
  states?: undefined;
  uniqueWhile?: undefined;
  onConflict?: undefined;
} & ({ period: Duration; within?: never } | { within: Duration; period?: never });

type Period =
  | {
      /** How long after its creation an existing job counts. Default: as long as its state counts. */
      period?: Duration | undefined;
      within?: undefined;
    }
  | {
      /** Another spelling of `period`. */
      within: Duration;
      period?: undefined;
    };

type States =
  | {
      /** States in which an existing job counts. Default: those in which it has not ended. */
      states?: readonly JobState[] | undefined;
      uniqueWhile?: undefined;
    }
  | {
      /** In place of `states`: not yet running; not yet ended; until it is removed. */
      uniqueWhile: 'queued' | 'active' | 'exists';
      states?: undefined;
    };

type Conflict =
  | {
      /** Default `reject`: {@link DuplicateJobError}. With `ignore` the existing job is returned, `deduplicated`. */
      onConflict?: 'reject' | 'ignore' | 'ignore_new' | 'replace_except_schedule' | undefined;
      maxWait?: undefined;
      maxCount?: undefined;
    }
  | {
      onConflict: 'replace' | 'cancel_existing';
      /** The job starts at last after this time from the first enqueue, however often it is replaced. */
      maxWait?: Duration | undefined;
      maxCount?: undefined;
    };

/** Arguments that accumulate in a job of the same queue that has not started. */
type Accumulating = {
  /** The arguments are appended to those of the job that waits, which is returned, `accumulated`. */
  onConflict: 'accumulate';
  /** Each enqueue starts the delay again, up to this long after the first. Default: the first enqueue decides. */
  maxWait?: Duration | undefined;
  /** Most enqueues in a job, 2 … 1000; then it starts, and another begins. Default 1000. */
  maxCount?: number | undefined;
  states?: undefined;
  uniqueWhile?: undefined;
} & Period;

type Standing = Period & States & Conflict;

/** Avoids a second job that does the same. */
export type UniqueOptions = Identity &
  ((Standing & { sample?: never }) | (Accumulating & { sample?: never }) | Sampled) & {
    /** Members of the objects in `args` that count; the others may differ. */
    argsKeys?: readonly string[] | undefined;
  };
