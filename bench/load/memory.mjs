/** The memory of a workerd process, and the heap of the queue's isolate in it. */
import { readFileSync } from 'node:fs';
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
  const targets = await (await fetch(`http://127.0.0.1:${port}/json`)).json();
  const target = targets.find(({ id, title }) => id === service || title?.includes(service));
  if (!target) return undefined;
  const socket = new WebSocket(target.webSocketDebuggerUrl ?? `ws://127.0.0.1:${port}/${service}`);
  try {
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error('The inspector does not answer.'));
    });
    const { usedSize, backingStorageSize = 0 } = await send(socket, 'Runtime.getHeapUsage');
    return usedSize + backingStorageSize;
  } finally {
    socket.close();
  }
}

function send(socket, method) {
  return new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error(`No answer to ${method}.`)), 30_000);
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(data);
      if (message.id !== 1) return;
      clearTimeout(limit);
      if (message.error) reject(new Error(`${method}: ${message.error.message}`));
      else resolve(message.result);
    });
    socket.send(JSON.stringify({ id: 1, method }));
  });
}
