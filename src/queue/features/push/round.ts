import type { JobBody } from '../../../job/record';
import type { Claimed } from '../../jobs/claim';
import type { LimitCheck } from '../../jobs/limit-check';
import type { JobRow } from '../../store/job-row';
import type { CallPlan } from './plan';
import type { PushTarget } from './target';

export class PushSelection {
  readonly calls: { target: PushTarget; jobs: Claimed[] }[] = [];
  readonly ask = new Set<PushTarget>();
  /** Work was left because calls ran out. */
  starved = false;
  /** Work was left because too many jobs run. */
  full = false;
  /** Reading reached its bound before it knew what is left: the next selection continues there. */
  unfinished = false;
  readonly expired: JobRow[] = [];
  readonly orphans: JobRow[] = [];

  /** @param chars characters of bodies that may still be under way to handlers */
  constructor(public chars: number) {}
}

export interface Round {
  target: PushTarget;
  plan: CallPlan;
  /** Jobs running there, by the announced entry that bounds them. */
  running: Map<string, number>;
  /** Epoch ms. */
  now: number;
  selection: PushSelection;
  limits: LimitCheck;
  bodies: Map<number, JobBody>;
  /** Keys of the jobs that were looked at by the cursor of their type, and whether it took them. */
  seen: Map<number, boolean>;
  starting: Map<string, number>;
  slots: number;
  starts: number;
  chunks: JobRow[][];
}

/**
 * Characters of bodies under way to handlers at most, unless a single job is larger. Each is in memory several times
 * while it is sent, and an object has 128 MB.
 */
export const MAX_CHARS_UNDER_WAY = 16 * 1024 * 1024;
