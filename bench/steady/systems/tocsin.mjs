/** Tocsin as people run it on their own machine: `tocsin serve`, and the client over a socket. */
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildCli } from '../../../.ci/cli.mjs';
import { buildServe } from '../../../.ci/serve.mjs';
import { writeBuilt } from '../../../.ci/ui.mjs';
import { call } from '../../http.mjs';
import { discard, scratch } from '../../load/scratch.mjs';
import { loadClient } from '../../servers/client.mjs';
import { freePort, start, stop, untilHealthy } from '../../servers/process.mjs';
import { Histogram } from '../histogram.mjs';
import { IN_HAND, PAYLOAD, WORK_MS } from '../load.mjs';
import { bytesBelow } from '../processes.mjs';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const QUEUE = 'steady';
const CONCURRENCY = { concurrency: IN_HAND };
const START_MS = 60_000;
const WORKER = fileURLToPath(new URL('../worker.mjs', import.meta.url));
const FILLER = fileURLToPath(new URL('../filler.mjs', import.meta.url));
/** Jobs that another queue gets. */
const BACKLOG = 1_000_000;
const SILENT_MS = 30_000;
const STORAGE_BYTES = 20_000_000;

/** Where the jobs run, and what `serve` is started with for it. */
const MODES = {
  pulled: ['--no-config'],
  pushed: ['--no-config', '--handlers', join(root, 'bench/steady/handler')],
  own: ['--config', join(root, 'bench/steady/own/wrangler.toml')],
};
/** A busy queue of short jobs: its documentation advises larger calls than usual. Those of the own Worker say it themselves. */
const HANDLERS = JSON.stringify({ 'steady.*': { binding: 'STEADY', batch_size: IN_HAND } });

/** The next message of a process. */
const said = (child) =>
  new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`A process of the load ended with ${code}.`)));
  });

export async function open({ mode, bad }) {
  const directory = scratch('tocsin-steady-');
  const program = join(directory, 'package/dist/cli/index.js');
  await writeBuilt();
  await buildCli(root, 'index.ts', program);
  await buildServe(root, join(directory, 'package/dist/serve'));
  const state = join(directory, 'state');
  const port = await freePort();
  const args = ['serve', '--port', String(port), '--state', state, ...MODES[mode]];
  let server;
  const begin = async () => {
    server = start(process.execPath, [program, ...args], { API_KEYS: '', ...(mode === 'pushed' && { HANDLERS }) });
    await untilHealthy(server, port, performance.now(), START_MS);
  };
  await begin();
  const workerd = () => Number(readFileSync(join(state, 'run/workerd.pid'), 'utf8'));
  // It is no child of this process, and outlives a `serve` that is killed.
  process.once('exit', () => {
    try {
      process.kill(workerd(), 'SIGKILL');
    } catch {
      // It has ended.
    }
  });
  const TocsinClient = await loadClient();
  const url = `http://127.0.0.1:${port}`;
  const producer = new TocsinClient({ url, socket: true });
  const admin = new TocsinClient({ url });
  if (mode === 'pushed') await admin.queues.configure(QUEUE, CONCURRENCY);

  // Not `enqueueMany`, which is a request of its own: what is enqueued together shares a message of the socket.
  const enqueue = (at) => producer.enqueue('steady.work', [at, PAYLOAD], { queue: QUEUE });
  const work = async (onStart) => {
    const over = new AbortController();
    const options = {
      signal: over.signal,
      concurrency: IN_HAND,
      socket: true,
      onError: () => undefined,
      log: () => undefined,
    };
    const handlers = {
      'steady.work': async ({ args }) => {
        onStart(args[0]);
        await new Promise((done) => setTimeout(done, WORK_MS));
      },
    };
    const done = admin.worker('steady', { queues: [QUEUE] }).run(handlers, options);
    return async () => {
      over.abort();
      await done;
    };
  };
  /** In a process of its own, which can be killed and is then started anew. */
  let worker;
  let startWorker;
  const workApart = (onCounted) => {
    startWorker = () => {
      worker = fork(WORKER, [url, QUEUE]).on('message', onCounted);
    };
    startWorker();
    return () => worker.kill();
  };
  const filler = bad === 'backlog' ? fork(FILLER, [url, 'another', BACKLOG]) : undefined;
  if (filler) await said(filler);
  const stats = () => call(port, 'GET', `/ojs/v1/queues/${QUEUE}/stats`);
  /** Jobs that ask for latencies, or that silence the handler, are no part of the load. */
  let asked = 0;
  const starts = async () => {
    const histogram = new Histogram();
    asked++;
    const job = await admin.enqueue('steady.starts', [], { queue: QUEUE, priority: 100 });
    histogram.merge((await admin.jobs.wait(job.id, { timeoutMs: START_MS })).result);
    return histogram;
  };
  return {
    notes: ['Tocsin by `tocsin serve`, with the client over a socket.'],
    enqueue: (stamps) => Promise.all(stamps.map(enqueue)),
    ...(mode !== 'pulled' ? { starts } : bad === 'worker' ? { workApart } : { work }),
    pids: () => [server.child.pid, workerd()],
    depth: async () => (await stats()).available,
    unended: async () => {
      const { available, active, retryable } = await stats();
      return available + active + retryable;
    },
    bytes: () => bytesBelow(state),
    rows: async () => (await call(port, 'GET', `/ojs/v1/admin/stats/cost?queue=${QUEUE}`)).total.rows_written,
    // At its storage bound a queue keeps few of them: what has started is counted instead.
    ...(bad !== 'storage' && { completed: async () => (await stats()).completed - asked }),
    killWorker: () => {
      worker.kill('SIGKILL');
      startWorker();
    },
    silence: () => {
      asked++;
      return admin.enqueue('steady.silence', [SILENT_MS], { queue: QUEUE, priority: 100 });
    },
    fillAnother: async () => {
      filler.send('fill');
      await said(filler);
    },
    boundStorage: () => admin.queues.configure(QUEUE, { maxStorageBytes: STORAGE_BYTES }),
    /** The runtime dies without notice; `serve` starts it again. */
    kill: () => process.kill(workerd(), 'SIGKILL'),
    close: async () => {
      await producer.close();
      filler?.kill();
      await stop(server);
      discard(directory);
    },
  };
}
