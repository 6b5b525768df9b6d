/** Many workers, followers and groups of one queue, whose memory is measured. */
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { call } from '../http.mjs';
import { configure, fill, job } from '../jobs.mjs';
import { openWorker } from '../socket.mjs';
import { check, within } from './steps.mjs';

/** Sockets that are opened at once. */
const AT_ONCE = 100;
/** Files that the runtime opens for a socket, and those of a process that are no sockets. */
const FILES_PER_SOCKET = 2;
const OTHER_FILES = 500;

const WAIT_MS = 60_000;
const JOBS_OF_GROUP = 20;
const BATCH = 1000;

/** Workers that hold a socket and wait for a job. In use: each has been given one. */
export function workers(wanted) {
  const count = Math.min(wanted, Math.floor((openFiles() - OTHER_FILES) / FILES_PER_SOCKET));
  const open = [];
  return {
    title: `${count.toLocaleString('en-US')} workers on a socket`,
    most: 32,
    fill: async (port, queue) => {
      await inParts(count, async (n) => {
        const worker = await openWorker(port, queue, `worker-${n}`);
        worker.say({ type: 'ready', count: 1 });
        open.push(worker);
      });
    },
    use: async (port, queue) => {
      const given = open.map((worker) => worker.next('jobs'));
      await fill(port, count, Math.min(count, BATCH), job(queue));
      await within(Promise.all(given), WAIT_MS, 'a job for each worker');
    },
    end: () => {
      for (const worker of open) worker.close();
    },
  };
}

/** Followers of the queue's events. In use: each has been sent those of a hundred jobs. */
export function followers(count) {
  const open = [];
  const JOBS = 100;
  return {
    title: `${count.toLocaleString('en-US')} followers of events`,
    most: 24,
    fill: async (port, queue) => {
      await call(port, 'POST', '/ojs/v1/jobs', job(queue));
      await inParts(count, async () => open.push(await follow(port, queue)));
    },
    use: async (port, queue) => {
      const told = open.map(({ until }) => until(JOBS));
      for (let n = 0; n < JOBS; n++) {
        await call(port, 'POST', '/ojs/v1/jobs', job(queue));
        await delay(20);
      }
      await within(Promise.all(told), WAIT_MS, 'the events for each follower');
    },
    end: () => {
      for (const follower of open) follower.close();
    },
  };
}

/** Groups that all have jobs waiting. In use: as a backlog is. */
export function groups(count) {
  return {
    title: `${count.toLocaleString('en-US')} groups of ${JOBS_OF_GROUP} jobs`,
    most: 16,
    fill: async (port, queue) => {
      await configure(port, queue, { groups: { order: 'fair' } });
      for (let done = 0; done < count * JOBS_OF_GROUP; done += BATCH) {
        const jobs = Array.from({ length: BATCH }, (_, n) => job(queue, { group: `group ${(done + n) % count}` }));
        const { enqueued } = await call(port, 'POST', '/ojs/v1/jobs/batch', { jobs });
        check('jobs enqueued', BATCH, enqueued);
      }
    },
  };
}

/** Reads the stream of the queue's events. `until` resolves when so many have come. */
function follow(port, queue) {
  let heard = 0;
  let rest = '';
  let wanted = Number.POSITIVE_INFINITY;
  let enough = () => undefined;
  return new Promise((resolve, reject) => {
    const path = `/ojs/v1/events/stream?queue=${queue}&types=job.enqueued`;
    const asked = get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`GET ${path}: ${response.statusCode}`));
      response.setEncoding('utf8');
      response.on('data', (text) => {
        const lines = (rest + text).split('\n');
        rest = lines.pop();
        heard += lines.filter((line) => line === 'event: job.enqueued').length;
        if (heard >= wanted) enough();
      });
      // Cut off by the one who closes it.
      response.on('error', () => undefined);
      const until = (count) =>
        new Promise((done) => {
          wanted = heard + count;
          enough = done;
        });
      resolve({ until, close: () => asked.destroy() });
    });
    asked.on('error', reject);
  });
}

async function inParts(count, act) {
  for (let done = 0; done < count; done += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - done) }, (_, n) => act(done + n)));
  }
}

/** How many files a process may have open here. */
function openFiles() {
  try {
    return Number(/Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Number.NaN) || 1024;
  } catch {
    return 1024;
  }
}
