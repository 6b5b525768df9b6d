/** The floor of the runtime: `bench/floor/worker.js`. */
import { startFloor } from '../../floor/server.mjs';
import { call, load } from '../../http.mjs';
import { enqueueRequest, job } from '../../jobs.mjs';
import { rate } from '../../stats.mjs';
import { check } from '../steps.mjs';

export async function open({ sizes }) {
  const { port, close } = await startFloor();

  const enqueue =
    (callers, batch, minimal = false) =>
    async (round) => {
      const queue = `floor-${callers}-${batch}-${minimal}-${round}`;
      const bytes = enqueueRequest(batch, job(queue), minimal);
      const first = await load({ port, connections: callers, ms: sizes.warmUpMs, next: () => bytes });
      const { requests, ms, errors } = await load({ port, connections: callers, ms: sizes.ms, next: () => bytes });
      check('refusals', 0, errors + first.errors);
      const { count } = await call(port, 'GET', `/count/${queue}`);
      check('jobs stored', (first.requests + requests) * batch, count);
      return rate(requests * batch, ms);
    };

  const pulled = (inHand) => async () => {
    const jobs = sizes.pulled[inHand];
    const socket = new WebSocket(`ws://127.0.0.1:${port}/socket`);
    let left = jobs;
    const answered = new Promise((resolve, reject) => {
      socket.onerror = () => reject(new Error('The socket of the floor failed.'));
      socket.onmessage = ({ data }) => {
        const answer = JSON.parse(data);
        left -= answer.reported;
        if (left <= 0) resolve(performance.now());
        else say(answer.jobs.map(({ id }) => ({ action: 'ack', job_id: id })));
      };
    });
    await new Promise((resolve) => {
      socket.onopen = resolve;
    });
    const say = (reports) => socket.send(JSON.stringify({ type: 'report', reports, ready: inHand }));
    const begun = performance.now();
    say([]);
    const endedAt = await answered;
    socket.close();
    return rate(jobs, endedAt - begun);
  };

  const measures = {};
  for (const callers of [1, 16, 64]) measures[`single-${callers}`] = enqueue(callers, 1);
  for (const batch of [100, 1000]) {
    for (const callers of [1, 16]) {
      measures[`batch-${batch}-${callers}`] = enqueue(callers, batch);
      measures[`minimal-${batch}-${callers}`] = enqueue(callers, batch, true);
    }
  }
  for (const inHand of [1, 10, 100]) measures[`pulled-${inHand}`] = pulled(inHand);
  return { measures, close, notes: [] };
}
