/** What the storage of the queues allows at the present load: how long ended jobs really stay. */
import type { TocsinClient } from '../client/client';
import type { QueueOverview } from '../client/queue-config';
import { parseDuration } from '../job/duration';
import { type Check, ok, warned } from './check';
import { orNone } from './failure';
import { lengthText, shellWord } from './output';

/** Share of the bound from which the queue deletes ended jobs early: see docs/operate/queues.md. */
const PRUNING = 0.8;
/** Below this many jobs, the tables of an empty database decide about the bytes of each. */
const MIN_JOBS = 1_000;
/** Queues that are looked at: one page of the list. */
const MAX_QUEUES = 200;
const MINUTE_MS = 60_000;

const STORAGE_PAGE = 'docs/operate/capacity.md';

/** What is known of a queue's storage. */
export interface Capacity {
  /** Bytes of each job that is stored, ended or not, with everything that belongs to it. */
  bytesPerJob: number;
  /** Jobs that ended in the last minute. */
  perMinute: number;
  /** How long ended jobs can stay at this rate, ms; infinite where none ends. */
  staysMs: number;
}

/** @returns undefined: too few jobs are stored to tell */
export function capacityOf({ storage, counts, throughput }: QueueOverview): Capacity | undefined {
  const jobs = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (!storage || jobs < MIN_JOBS) return undefined;
  const bytesPerJob = storage.bytes / jobs;
  const perMinute = throughput.processedPerMinute + throughput.failedPerMinute;
  return { bytesPerJob, perMinute, staysMs: ((PRUNING * storage.maxBytes) / (bytesPerJob * perMinute)) * MINUTE_MS };
}

/** A check of each queue that is full, or deletes completed jobs before their retention ends at the present rate. */
export async function capacityChecks(tocsin: TocsinClient): Promise<Check[]> {
  const checks: Check[] = [];
  let fullest = { name: '', share: 0, of: 0 };
  let looked = 0;
  for await (const queue of tocsin.queues.overview({ limit: MAX_QUEUES })) {
    if (++looked > MAX_QUEUES) break;
    const { name, storage } = queue;
    if (!storage) continue;
    const share = storage.bytes / storage.maxBytes;
    if (share > fullest.share) fullest = { name, share, of: storage.maxBytes };
    const warning = (message: string, hint: string) => checks.push(warned('storage', message, hint));
    if (storage.state === 'full') {
      warning(`${name} is full and rejects new jobs.`, `tocsin queues purge ${shellWord(name)} --state completed`);
      continue;
    }
    const found = capacityOf(queue);
    if (!found || found.staysMs === Number.POSITIVE_INFINITY) continue;
    const config = await orNone(tocsin.queues.config(name), undefined);
    const wanted = parseDuration(config?.effective.retention?.completed);
    if (wanted === undefined || wanted <= found.staysMs) continue;
    const load = `${Math.ceil(found.perMinute / 60)} jobs/s of ${Math.round(found.bytesPerJob)} bytes`;
    const message = `${name}: ended jobs stay about ${lengthText(found.staysMs)}, not ${lengthText(wanted)}: ${load}.`;
    warning(message, `Shorten the retention, or use several queues: ${STORAGE_PAGE}`);
  }
  if (checks.length > 0 || fullest.name === '') return checks;
  const { name, share, of } = fullest;
  return [ok('storage', `the fullest queue, ${name}, uses ${percent(share)} of ${gigabytes(of)}`)];
}

const percent = (share: number) => (share < 0.01 ? 'less than 1 %' : `${Math.round(100 * share)} %`);
const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
