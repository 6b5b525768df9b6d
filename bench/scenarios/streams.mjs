/**
 * How soon a reader sees what a job writes to an output stream: from the moment its worker sends a chunk to the moment a
 * reader's connection has it, both on this process's clock. Each of many jobs writes one stream, which several readers follow
 * over Server-Sent Events. CPU and memory are those of the whole runtime.
 */
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { call } from '../http.mjs';
import { job } from '../jobs.mjs';
import { memory } from '../load/memory.mjs';
import { cpuPer, round, summary } from '../stats.mjs';

export const title = 'Output streams: from a write to the readers';
export const servers = ['workerd'];
export const columns = [
  'streams',
  'readers',
  'writes_s',
  'seen',
  'p50_ms',
  'p99_ms',
  'max_ms',
  'cpu_us_a_reader',
  'rss_mb',
];

const QUEUE = 'streams';
const NAME = 'out';
/** Readers of each stream. */
const EACH = 10;

export async function run({ port, pid, cpuMs }, { quick }) {
  const streams = quick ? 20 : 100;
  const writes = quick ? 6 : 20;
  const jobs = Array.from({ length: streams }, () => job(QUEUE, { type: 'bench.stream', timeout_ms: 600_000 }));
  await call(port, 'POST', '/ojs/v1/jobs/batch', { jobs });
  const fetched = await call(port, 'POST', '/ojs/v1/workers/fetch', { queues: [QUEUE], count: streams });
  const ids = fetched.jobs.map(({ id }) => id);
  if (ids.length !== streams) throw new Error(`Only ${ids.length} of ${streams} jobs were handed out.`);
  const seen = [];
  const readers = await Promise.all(ids.flatMap((id) => Array.from({ length: EACH }, () => follow(port, id, seen))));
  const before = cpuMs();
  const began = performance.now();
  // A request is answered when its chunk is written, which happens once a second; readers have it before.
  const write = async (id, at) => {
    for (let n = 0; n < writes; n++) {
      // All were answered in the same moment, and would write in the same one.
      await delay((1_000 * at) / streams);
      const chunk = { sentAt: performance.now(), text: ' and some words more' };
      await call(port, 'POST', `/ojs/v1/jobs/${id}/streams/${NAME}`, { job_id: id, first: n, chunks: [chunk] });
    }
  };
  await Promise.all(ids.map(write));
  const seconds = (performance.now() - began) / 1000;
  const all = streams * EACH * writes;
  for (let waits = 0; seen.length < all && waits < 100; waits++) await delay(100);
  const cpu = cpuPer(cpuMs, before, seen.length);
  const { rss_mb } = await memory(pid);
  for (const socket of readers) socket.destroy();
  const { p50, p99, max } = summary(seen);
  return [
    {
      ...{
        streams,
        readers: streams * EACH,
        writes_s: round((streams * writes) / seconds),
        seen: `${seen.length} of ${all}`,
      },
      ...{ p50_ms: p50, p99_ms: p99, max_ms: max, cpu_us_a_reader: cpu, rss_mb },
    },
  ];
}

/** Opens a connection that follows the stream of a job; notes how long each chunk was under way. */
function follow(port, id, seen) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      socket.write(
        `GET /ojs/v1/jobs/${id}/streams/${NAME} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n`,
      );
    });
    socket.once('error', reject);
    let rest = '';
    socket.on('data', (bytes) => {
      const now = performance.now();
      resolve(socket);
      const lines = (rest + bytes.toString('latin1')).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        const sentAt = /"sentAt":([\d.]+)/.exec(line)?.[1];
        if (sentAt !== undefined) seen.push(now - Number(sentAt));
      }
    });
  });
}
