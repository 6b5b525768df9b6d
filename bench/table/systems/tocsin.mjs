/** Tocsin in raw workerd. */
import { call } from '../../http.mjs';
import { fill, job } from '../../jobs.mjs';
import { ask, fillAndDrain, startsLate } from '../../load/steps.mjs';
import { startWorkerd } from '../../load/workerd.mjs';
import { QUEUE } from '../../scenarios/latency.mjs';
import { loadClient } from '../../servers/client.mjs';
import {
  check,
  DATA,
  dueTogether,
  enqueues,
  IN_HAND,
  lateness,
  RETRY,
  requests,
  runs,
  starts,
  startsPushed,
} from '../steps.mjs';

const ROUNDS = [1, 2, 3];
/** Queues that are pushed from, one for each time that a line is measured. */
const pushedFrom = (name, target) => ROUNDS.map((round) => [`${name}-${round}/*`, target]);
const HANDLERS = Object.fromEntries([
  ...pushedFrom('pushed', { binding: 'HANDLER', batch_size: 100 }),
  ...pushedFrom('pushed-retry', { binding: 'HANDLER', batch_size: 100 }),
  ...pushedFrom('pushed-due', { binding: 'LOAD', batch_size: 100 }),
]);

export async function open({ sizes }) {
  const server = await startWorkerd({ handlers: HANDLERS });
  const { port } = server;
  const TocsinClient = await loadClient();
  const client = new TocsinClient({ url: `http://127.0.0.1:${port}` });
  /** Enqueues over a socket. */
  const live = new TocsinClient({ url: `http://127.0.0.1:${port}`, socket: true });
  const stats = (queue) => call(port, 'GET', `/ojs/v1/queues/${queue}/stats`);

  const single = (name, producer, callers) => (round) => {
    const queue = `${name}-${callers}-${round}`;
    return enqueues(sizes, { callers }, () => producer.enqueue('bench.noop', [DATA], { queue }), waiting(queue));
  };

  const http =
    (callers, batch, minimal = false) =>
    (round) => {
      const queue = `http-${callers}-${batch}-${minimal}-${round}`;
      return requests(sizes, { port, queue, callers, batch, minimal }, waiting(queue));
    };

  const waiting = (queue) => async () => (await stats(queue)).available;

  /** A worker of the library; its stop resolves when everything is reported. */
  const worker = (queue, { socket, inHand = IN_HAND, before = () => undefined }) => {
    return async (onStart) => {
      const stop = new AbortController();
      let failed;
      const onError = (error) => {
        failed ??= error;
      };
      const options = { signal: stop.signal, concurrency: inHand, socket, onError, log: () => undefined };
      const handlers = {
        'bench.noop': (_job, ctx) => {
          before(ctx);
          onStart();
        },
      };
      const done = client.worker(`bench-${queue}`, { queues: [queue] }).run(handlers, options);
      return async () => {
        stop.abort();
        await done;
        if (failed !== undefined) throw failed;
      };
    };
  };

  const pulled = (over, inHand) => async (round) => {
    const queue = `${over}-${inHand}-${round}`;
    const jobs = sizes.pulled[inHand];
    await fill(port, jobs, 1000, job(queue));
    const perSecond = await runs(jobs, worker(queue, { socket: over === 'socket', inHand }));
    check('jobs completed', jobs, (await ask(port, 'progress', queue)).completed);
    return perSecond;
  };

  const retried = (over) => async (round) => {
    const queue = `retry-${over}-${round}`;
    await fill(port, sizes.retried, 1000, job(queue, { retry: RETRY }));
    const before = ({ attempt }) => {
      if (attempt === 1) throw new Error('fails once');
    };
    const perSecond = await runs(sizes.retried, worker(queue, { socket: over === 'socket', before }));
    check('jobs completed', sizes.retried, (await ask(port, 'progress', queue)).completed);
    return perSecond;
  };

  const measures = {
    'retry-socket': retried('socket'),
    'retry-http': retried('http'),
    'retry-pushed': async (round) => {
      const queue = `pushed-retry-${round}`;
      const one = job(queue, { type: 'bench.fail-once', retry: RETRY });
      const { drain_s, completed } = await fillAndDrain(server, queue, sizes.retried, 60_000, undefined, one);
      check('jobs completed', sizes.retried, completed);
      return drain_s;
    },
    'start-pulled': (round) => {
      const queue = `start-${round}`;
      return starts(sizes, () => live.enqueue('bench.noop', [DATA], { queue }), worker(queue, { socket: true }));
    },
    'start-pushed': () => startsPushed(server, sizes, (type, args) => live.enqueue(type, args, { queue: QUEUE })),
    'due-pulled': (round) => {
      const queue = `due-${round}`;
      const enqueue = (count, at) => {
        const one = { type: 'bench.noop', args: [DATA], options: { queue, delayUntil: new Date(at) } };
        return client.enqueueMany(Array(count).fill(one));
      };
      return dueTogether(sizes, enqueue, worker(queue, { socket: true }));
    },
    'due-pushed': async (round) => {
      const late = await startsLate(port, `pushed-due-${round}`, sizes.due, sizes.dueInMs);
      check('starts', sizes.due, late.length);
      return lateness(late);
    },
    pushed: async (round) => {
      const { drain_s, completed } = await fillAndDrain(server, `pushed-${round}`, sizes.pushed, 60_000);
      check('jobs completed', sizes.pushed, completed);
      return drain_s;
    },
  };
  for (const callers of [1, 16, 64]) {
    measures[`library-${callers}`] = single('library', client, callers);
    measures[`live-${callers}`] = single('live', live, callers);
    measures[`http-${callers}`] = http(callers, 1);
  }
  for (const batch of [100, 1000]) {
    for (const callers of [1, 16]) {
      measures[`batch-${batch}-${callers}`] = http(callers, batch);
      measures[`minimal-${batch}-${callers}`] = http(callers, batch, true);
    }
  }
  for (const inHand of [1, 10, 100]) {
    measures[`socket-${inHand}`] = pulled('socket', inHand);
    measures[`pulled-http-${inHand}`] = pulled('http', inHand);
  }
  const close = async () => {
    await live.close();
    await server.close();
  };
  return { measures, close, notes: [] };
}
