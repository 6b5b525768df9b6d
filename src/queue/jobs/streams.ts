/**
 * Output streams of running jobs. Chunks are shown to readers on arrival, and written once a second. Also written, in
 * the same transaction: with the record of a step, and with the end of an attempt.
 */
import { noStream, type StreamPlace, type StreamSaid } from '../../job/streams';
import type { StreamPage, StreamReceipt, StreamRequest, StreamState, StreamView } from '../../rpc/workers';
import { mustFindForReport, viewOf } from '../read/find';
import type { Active } from '../store/active';
import type { JobRow } from '../store/job-row';
import type { Named, Stored, StoredQueue } from '../store/parts';
import { idOf } from '../store/rows';
import { keyOfFound, runningFor } from './fence';

/** How often what was shown is written, ms. */
const WRITTEN_EVERY_MS = 1_000;

interface Writing {
  readonly q: Named & Stored;
  write<T>(operation: (now: number) => T): Promise<T>;
  writeNow<T>(operation: (now: number) => T): T;
  keepAlive(promise: Promise<unknown>): void;
}

/** Shows chunks of the attempt that runs. @returns once they are written @throws {ApiError} 409, 413 */
export function writeStream(host: Writing, row: JobRow, { claim }: Active, said: StreamSaid): Promise<StreamReceipt> {
  const { q } = host;
  const { streams } = q.store;
  const { shown, isReset } = streams.append(row.key, claim, said);
  // After its reset no reader may find what was there before.
  if (isReset) host.writeNow(() => streams.flush(row.key));
  if (shown.chunks.length > 0) streams.show(idOf(q.route, row), shown);
  const receipt = { run: shown.run, next: shown.first + shown.chunks.length };
  const written = said.flush || streams.isDue(row.key) ? host.write(() => streams.flush(row.key)) : nextWrite(host);
  return written.then(() => receipt);
}

/** {@link writeStream} for a job that a worker has pulled. @throws {ApiError} 404; 409 unless the attempt runs; 413 */
export function writePulled(host: Writing, request: StreamRequest, now: number): Promise<StreamReceipt> {
  const { row, active } = runningFor(host.q, request, now);
  return writeStream(host, row, active, request);
}

/** Takes chunks that came with the end of their attempt, and are written with it. @throws {ApiError} 409, 413 */
export function addChunks(
  { route, store: { streams } }: Named & Stored,
  row: JobRow,
  { claim }: Active,
  said: StreamSaid,
) {
  const { shown } = streams.append(row.key, claim, said);
  if (shown.chunks.length > 0) streams.show(idOf(route, row), shown);
}

/** Until everything that was shown so far is written. */
function nextWrite(host: Writing): Promise<void> {
  const { streams, leases } = host.q.store;
  if (streams.tick) return streams.tick;
  const write = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, WRITTEN_EVERY_MS));
    streams.tick = undefined;
    while (await host.write(() => streams.flushAll()));
    streams.sweep((key) => leases.active.has(key));
  };
  streams.tick = write();
  host.keepAlive(streams.tick.catch(() => undefined));
  return streams.tick;
}

/** The streams of a job. @throws {ApiError} 404 */
export function streamsOf(q: Named & Stored, id: string): StreamView[] {
  const heads = q.store.streams.heads(keyOfFound(mustFindForReport(q, id)));
  return [...heads].map(([name, { writer, run, next, bytes }]) => ({
    ...{ name, run, next, bytes },
    ...(writer !== null && { step: writer }),
  }));
}

const STATES: Readonly<Record<string, StreamState>> = {
  completed: 'completed',
  cancelled: 'cancelled',
  discarded: 'failed',
};

/** Chunks after a place; from the beginning where a later run has begun. @throws {ApiError} 404 */
export function streamPage(
  q: StoredQueue,
  { id, name, after, maxChars }: { id: string; name: string; after: StreamPlace | undefined; maxChars: number },
  now: number,
): StreamPage {
  const found = mustFindForReport(q, id);
  const key = keyOfFound(found);
  const state = STATES[viewOf(q, found, now).record.state] ?? 'open';
  const head = q.store.streams.heads(key).get(name);
  if (!head) {
    if (state !== 'open') throw noStream(name);
    return { state, first: 0, chunks: [], isWhole: true };
  }
  const { run, next } = head;
  // A reader may have more than a new object has: it gets nothing until its writer has sent that again.
  const first = after?.run === run ? after.n + 1 : 0;
  const chunks = q.store.streams.read(key, name, run, first, maxChars);
  return { state, run, first, chunks, isWhole: first + chunks.length >= next };
}
