import { formatInstant } from '../../job/time';
import { type WaitingFor, waiting } from '../../job/waiting';
import type { ChunkScan } from '../store/chunks/scan';
import type { JobRow } from '../store/job-row';
import { availableSince } from '../store/rows';

/** Why a job waits that is gathered; `isReady`: its chunk may start, as far as it is concerned. */
export function waitsForChunk(
  scan: ChunkScan | undefined,
  row: JobRow,
  now: number,
): { why: WaitingFor; isReady: boolean } | undefined {
  const lane = scan?.laneOf(row.key);
  const settings = lane?.jobs.find(({ key }) => key === row.key)?.settings;
  if (!scan || !lane || !settings) return undefined;
  const isReady = scan.ready.has(lane) || lane.moment <= now;
  const count = lane.jobs.length;
  const { size, wait_ms } = settings;
  const oldest = lane.jobs.reduce((first, { since }) => Math.min(first, since), Number.POSITIVE_INFINITY);
  const until = oldest + wait_ms;
  const of = lane.group === undefined ? '' : ' of its group';
  const has =
    count >= size ? `${count} jobs${of} wait for calls of up to ${size}` : `${count} of ${size} jobs${of} wait`;
  const next = isReady ? 'The call is about to start.' : `The call starts with these at ${formatInstant(until)}.`;
  const detail = `Its handler takes many jobs in one call: ${has}. ${next}`;
  return { why: waiting('chunk', detail, availableSince(row), isReady ? undefined : until), isReady };
}
