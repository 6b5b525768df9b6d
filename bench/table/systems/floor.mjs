/** The floor of the runtime: `bench/floor/worker.js`. */
import { startFloor } from '../../floor/server.mjs';
import { Connection, call, request } from '../../http.mjs';
import { job } from '../../jobs.mjs';
import { loadClient } from '../../servers/client.mjs';
import { openSocket } from '../../socket.mjs';
import { rate } from '../../stats.mjs';
import { check, DATA, enqueues, requests, starts, startsPushed, within } from '../steps.mjs';

export async function open({ sizes }) {
  const { port, close: end } = await startFloor();
  const TocsinClient = await loadClient();
  const url = `http://127.0.0.1:${port}/client`;
  const overHttp = new TocsinClient({ url });
  const overSocket = new TocsinClient({ url, socket: true });

  const enqueue =
    (callers, batch, minimal = false) =>
    (round) => {
      const queue = `floor-${callers}-${batch}-${minimal}-${round}`;
      const stored = async () => (await call(port, 'GET', `/count/${queue}`)).count;
      return requests(sizes, { port, queue, callers, batch, minimal }, stored);
    };

  /** A socket of one of its objects. @param heard gets what it is told */
  const connect = (name, heard) => openSocket(port, `/socket/${name}`, { heard });

  /** A worker over HTTP: each fetch brings the reports of the one before. */
  const pulledOverHttp = (inHand) => async (round) => {
    const connection = await Connection.open(port);
    let left = sizes.pulled[inHand];
    let reports = [];
    const begun = performance.now();
    while (left > 0) {
      const ask = { queues: [`pull-${inHand}-${round}`], worker_id: 'floor', count: inHand, reports };
      const { status, body } = await connection.send(request('POST', '/invented/ojs/v1/workers/fetch', ask));
      check('the status of a fetch', 200, status);
      left -= reports.length;
      reports = JSON.parse(body.toString()).jobs.map(({ id }) => ({ action: 'ack', job_id: id }));
    }
    const perSecond = rate(sizes.pulled[inHand], performance.now() - begun);
    connection.close();
    return perSecond;
  };

  const pulled = (inHand) => async () => {
    const jobs = sizes.pulled[inHand];
    let left = jobs;
    let finished;
    const answered = new Promise((resolve) => {
      finished = resolve;
    });
    const say = (reports) => socket.say({ type: 'report', reports, ready: inHand });
    const socket = await connect('pull', (answer) => {
      left -= answer.reported;
      if (left <= 0) finished(performance.now());
      else say(answer.jobs.map(({ id }) => ({ action: 'ack', job_id: id })));
    });
    const begun = performance.now();
    say([]);
    const endedAt = await within(answered, 120_000, 'the jobs');
    socket.close();
    return rate(jobs, endedAt - begun);
  };

  /** Enqueues jobs over a socket, in a message each time. */
  const producer = async (name, type = 'enqueue') => {
    let answered;
    const { say, close } = await connect(name, () => answered());
    const enqueue = (jobs) =>
      new Promise((resolve) => {
        answered = resolve;
        say({ type, jobs });
      });
    return { enqueue, close };
  };

  /** Callers of one client: they get their answers together, so their jobs share a message. */
  const live = (callers) => async (round) => {
    const name = `live-${callers}-${round}`;
    const { enqueue, close } = await producer(name);
    const jobs = Array(callers).fill(job(name));
    const stored = async () => (await call(port, 'GET', `/count/${name}`)).count;
    const perSecond = await enqueues(sizes, { callers: 1, perCall: callers }, () => enqueue(jobs), stored);
    close();
    return perSecond;
  };

  /** The callers of the table, with the client library that Tocsin is measured with. */
  const throughClient = (client, callers) => async (round) => {
    const queue = `client-${client === overHttp ? 'http' : 'socket'}-${callers}-${round}`;
    const stored = async () => (await call(port, 'GET', `/count/${queue}`)).count;
    const enqueue = () => client.enqueue('bench.noop', [DATA], { queue });
    return enqueues(sizes, { callers }, enqueue, stored);
  };

  const start = async (round) => {
    const name = `start-${round}`;
    const { enqueue, close } = await producer(name);
    const late = await starts(
      sizes,
      () => enqueue([job(name)]),
      async (onStart) => (await connect(name, onStart)).close,
    );
    close();
    return late;
  };

  const startPushed = async (round) => {
    const name = `start-pushed-${round}`;
    const { enqueue, close } = await producer(name, 'push');
    const late = await startsPushed({ port }, sizes, (type, args) => enqueue([job(name, { type, args })]));
    close();
    return late;
  };

  const pushed = async () => {
    const begun = performance.now();
    await call(port, 'POST', '/push', { count: sizes.pushed, size: 100, at_once: 6 });
    return rate(sizes.pushed, performance.now() - begun);
  };

  const measures = { 'start-pulled': start, 'start-pushed': startPushed, pushed };
  measures['client-64'] = throughClient(overSocket, 64);
  for (const callers of [1, 16, 64]) {
    measures[`single-${callers}`] = enqueue(callers, 1);
    measures[`library-${callers}`] = throughClient(overHttp, callers);
    measures[`live-${callers}`] = live(callers);
  }
  for (const batch of [100, 1000]) {
    for (const callers of [1, 16]) {
      measures[`batch-${batch}-${callers}`] = enqueue(callers, batch);
      measures[`minimal-${batch}-${callers}`] = enqueue(callers, batch, true);
    }
  }
  for (const inHand of [1, 10, 100]) {
    measures[`pulled-${inHand}`] = pulled(inHand);
    measures[`pulled-http-${inHand}`] = pulledOverHttp(inHand);
  }
  const close = async () => {
    await overSocket.close();
    await end();
  };
  return { measures, close, notes: [] };
}
