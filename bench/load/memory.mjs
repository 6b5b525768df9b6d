/** The memory of a workerd process, and the heap of the queue's isolate in it. */
import { readFileSync } from 'node:fs';
import { inspect } from '../servers/inspector.mjs';
import { round } from '../stats.mjs';

const MB = 1024 * 1024;

/**
 * `rss_mb`: resident memory of the whole process: runtime, all isolates, SQLite's page caches; `peak_mb`: the most it
 * ever was. `heap_mb`: JavaScript objects and buffers of the queue's isolate, what the platform's 128 MB are about; SQLite
 * lies outside of it. Undefined is what cannot be had here.
 * @param inspector port of the inspector
 */
export async function memory(pid, inspector) {
  const heap = inspector === undefined ? undefined : await heapBytes(inspector, 'queue');
  return { ...resident(pid), heap_mb: heap === undefined ? undefined : round(heap / MB, 1) };
}

function resident(pid) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const read = (name) => round(Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) / 1024);
    return { rss_mb: read('VmRSS'), peak_mb: read('VmHWM') };
  } catch {
    return {};
  }
}

async function heapBytes(port, service) {
  if (typeof WebSocket === 'undefined') return undefined;
  const session = await inspect(port, service);
  if (!session) return undefined;
  try {
    const { usedSize, backingStorageSize = 0 } = await session.send('Runtime.getHeapUsage');
    return usedSize + backingStorageSize;
  } finally {
    session.close();
  }
}
