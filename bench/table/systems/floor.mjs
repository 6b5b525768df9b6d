/** The floor of the runtime: `bench/floor/worker.js`. */
import { startFloor } from '../../floor/server.mjs';
import { call } from '../../http.mjs';
import { rate } from '../../stats.mjs';
import { requests } from '../steps.mjs';

export async function open({ sizes }) {
  const { port, close } = await startFloor();

  const enqueue =
    (callers, batch, minimal = false) =>
    (round) => {
      const queue = `floor-${callers}-${batch}-${minimal}-${round}`;
      const stored = async () => (await call(port, 'GET', `/count/${queue}`)).count;
      return requests(sizes, { port, queue, callers, batch, minimal }, stored);
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
