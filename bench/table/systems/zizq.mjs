/** Zizq over HTTP with JSON, as any language would speak it, where `ZIZQ_URL` names a server on this machine. */
import { get } from 'node:http';
import { Connection, call, load, request } from '../../http.mjs';
import { rate } from '../../stats.mjs';
import { check, DATA, dueTogether, IN_HAND, runs, starts } from '../steps.mjs';

/** Acknowledged in one request, at most. */
const ACKS = 1000;

export async function open({ sizes }) {
  const url = process.env.ZIZQ_URL;
  if (url === undefined) return { skipped: 'ZIZQ_URL names no server. Start one that flushes every commit to disk.' };
  const { hostname, port: text } = new URL(url);
  if (hostname !== '127.0.0.1') return { skipped: 'ZIZQ_URL must be http://127.0.0.1:<port>.' };
  const port = Number(text);
  await call(port, 'GET', '/health');
  const connection = await Connection.open(port);
  const send = async (path, body) => {
    const { status, body: answer } = await connection.send(request('POST', path, body));
    if (status >= 400) throw new Error(`POST ${path}: ${status} ${answer.toString().slice(0, 300)}`);
  };

  // Queues of an earlier run are left alone.
  const run = Date.now();
  let queues = 0;
  const newQueue = () => `bench-${run}-${++queues}`;
  const count = async (queue, status) => {
    const answer = await call(port, 'GET', `/jobs/count?queue=${queue}&status=${status}`);
    return answer.count;
  };
  const one = (queue, more = {}) => ({ type: 'noop', queue, payload: DATA, ...more });
  const many = (queue, jobs, more) => ({ jobs: Array.from({ length: jobs }, () => one(queue, more)) });
  const fill = async (queue, jobs) => {
    for (let done = 0; done < jobs; done += 1000) await send('/jobs/bulk', many(queue, Math.min(1000, jobs - done)));
  };

  const enqueue = (callers, batch) => async () => {
    const queue = newQueue();
    const bytes =
      batch === 1 ? request('POST', '/jobs', one(queue)) : request('POST', '/jobs/bulk', many(queue, batch));
    const first = await load({ port, connections: callers, ms: sizes.warmUpMs, next: () => bytes });
    const { requests, ms, errors } = await load({ port, connections: callers, ms: sizes.ms, next: () => bytes });
    check('refusals', 0, errors + first.errors);
    check('jobs stored', (first.requests + requests) * batch, await count(queue, 'ready'));
    return rate(requests * batch, ms);
  };

  /** Reads the stream of jobs, and acknowledges together what ends while a request is under way. */
  const worker =
    (queue, inHand = IN_HAND, failing = () => false) =>
    async (onStart) => {
      let ended = [];
      let sending;
      const flush = async () => {
        while (ended.length > 0) await send('/jobs/success', { ids: ended.splice(0, ACKS) });
        sending = undefined;
      };
      const failures = new Set();
      const take = ({ id }) => {
        if (failing(id)) {
          const report = { message: 'fails once', retry_at: Date.now() + 1 };
          const failure = send(`/jobs/${id}/failure`, report).finally(() => failures.delete(failure));
          failures.add(failure);
          return;
        }
        onStart();
        ended.push(id);
        sending ??= Promise.resolve().then(flush);
      };
      const stream = await taken(port, queue, inHand, take);
      return async () => {
        await Promise.all([sending, ...failures]);
        ended = [];
        stream.destroy();
      };
    };

  const completed = async (queue, jobs) => check('jobs completed', jobs, await count(queue, 'completed'));
  const measures = {
    retry: async () => {
      const queue = newQueue();
      await fill(queue, sizes.retried);
      const seen = new Set();
      const failing = (id) => !seen.has(id) && seen.add(id) !== undefined;
      const perSecond = await runs(sizes.retried, worker(queue, IN_HAND, failing));
      await completed(queue, sizes.retried);
      return perSecond;
    },
    start: () => {
      const queue = newQueue();
      return starts(sizes, () => send('/jobs', one(queue)), worker(queue));
    },
    due: () => {
      const queue = newQueue();
      return dueTogether(sizes, (jobs, at) => send('/jobs/bulk', many(queue, jobs, { ready_at: at })), worker(queue));
    },
  };
  for (const callers of [1, 16, 64]) measures[`single-${callers}`] = enqueue(callers, 1);
  for (const batch of [100, 1000]) {
    for (const callers of [1, 16]) measures[`batch-${batch}-${callers}`] = enqueue(callers, batch);
  }
  for (const inHand of [1, 10, 100]) {
    measures[`pulled-${inHand}`] = async () => {
      const queue = newQueue();
      await fill(queue, sizes.pulled[inHand]);
      const perSecond = await runs(sizes.pulled[inHand], worker(queue, inHand));
      await completed(queue, sizes.pulled[inHand]);
      return perSecond;
    };
  }
  return { measures, close: () => connection.close(), notes: ['Zizq over HTTP with JSON, as its server was started.'] };
}

/** Opens the stream of jobs, a line each. Empty lines say that it lives. */
function taken(port, queue, prefetch, onJob) {
  return new Promise((resolve, reject) => {
    const path = `/jobs/take?queue=${queue}&prefetch=${prefetch}`;
    const options = { host: '127.0.0.1', port, path, headers: { Accept: 'application/x-ndjson' }, agent: false };
    const asked = get(options, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`GET ${path}: ${response.statusCode}`));
      let rest = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop();
        for (const line of lines) if (line.trim() !== '') onJob(JSON.parse(line));
      });
      // Cut off by the one who closes it.
      response.on('error', () => undefined);
      resolve(asked);
    });
    asked.on('error', reject);
  });
}
