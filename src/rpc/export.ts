/** The part of a queue object's RPC interface by which a queue is exported and imported. Times in epoch ms. */
import type { Imported } from '../contract/export';
import type { StoredJob, StoredState } from '../export/stored-job';
import type { GroupChange, GroupOverrides } from '../job/group';
import type { QueueConfig, QueueMode } from '../settings';

export interface ExportStart {
  /** Jobs up to this sequence number are exported: those of later enqueues are not. */
  until: number;
  /** What the queue says itself. */
  config: QueueConfig;
  mode: QueueMode;
  /** What operators say of single groups. */
  groups: GroupOverrides;
  /** Batches over several queues that are not decided yet: their jobs are not exported. */
  undecided: number;
}

export interface ExportRequest {
  /** Jobs after this sequence number. */
  after: number;
  until: number;
  /** With all jobs that have ended; dead letters are always there. */
  ended: boolean;
  /** Jobs of the page at most, if that is less than a page may have. */
  limit?: number;
}

export interface ExportPage {
  /** A line for each job, with a line feed behind it. */
  lines: string;
  jobs: Partial<Record<StoredState, number>>;
  /** What of these jobs is left out, and how often. */
  not_kept: Record<string, number>;
  /** Where the next page begins; absent: this was the last. */
  next?: number;
}

/** A part of a file, without jobs that other queues have. */
export interface ImportPart {
  /** From 1 on. */
  number: number;
  settings?: { config: QueueConfig; mode: QueueMode; groups: Record<string, GroupChange> };
  jobs: StoredJob[];
}

/** Parts of a file that are taken in one transaction. */
export interface ImportRequest {
  /** Names the file: the hash of its first part. */
  file: string;
  /** Into a queue that has other jobs; its settings stay. */
  merge: boolean;
  /** One after the other. */
  parts: ImportPart[];
}

export type PartsImported = Pick<Imported, 'imported' | 'known' | 'id_rows'>;
