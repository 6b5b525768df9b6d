import { type End, ownRetentionMs, removalMoment } from '../../job/retention';
import { type JobRow, readableBody, STATE } from './job-row';
import type { Configured } from './parts';

/** When a job ending now is removed by itself, epoch ms; `now`: not kept; undefined: by the queue's retention. */
export function keptUntil(
  { config }: Configured,
  row: Pick<JobRow, 'body' | 'type'>,
  end: End,
  now: number,
): number | undefined {
  // Most jobs have neither, and parsing is not free.
  const body = /"(?:retention|preset)":/.test(row.body) ? readableBody(row) : undefined;
  let own = ownRetentionMs(body?.retention, end);
  // What the queue keeps for ever anyway follows its settings, and saves a row.
  if (own === undefined && config.retentionMs(end) < Number.POSITIVE_INFINITY) {
    own = config.keptByPreset(row.type, body ?? {}, end);
  }
  return own === undefined ? undefined : removalMoment(now, own);
}

/** How a job ended that has a row in this state; undefined when it has not. */
export function endOf(state: number): Exclude<End, 'completed'> | undefined {
  if (state === STATE.cancelled) return 'cancelled';
  if (state === STATE.discarded) return 'discarded';
  return state === STATE.dead ? 'dead_letter' : undefined;
}
