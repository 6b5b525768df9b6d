/** From the start of the process to the first 200 of the health route, and the first request to an object not in memory. */
import { Connection, request } from '../http.mjs';
import { bench, fill, job } from '../jobs.mjs';
import { start as startServer } from '../servers/index.mjs';
import { summary } from '../stats.mjs';

export const title = 'Start-up';
export const servers = ['workerd', 'wrangler'];
export const columns = ['measured', 'samples', 'p50_ms', 'max_ms'];

export async function run(server, { quick }) {
  const starts = [server.startupMs];
  for (let n = 1; n < (quick ? 2 : 5); n++) {
    const other = await startServer(server.kind);
    starts.push(other.startupMs);
    await other.close();
  }
  const { cold, warm } = await objects(server.port, quick ? 10 : 50);
  const row = (measured, samples) => {
    const { p50, max } = summary(samples);
    return { measured, samples: samples.length, p50_ms: p50, max_ms: max };
  };
  return [
    row('process start to first 200 of /ojs/v1/health', starts),
    row('enqueue into an object not in memory, 10,000 jobs stored', cold),
    row('the same, in memory', warm),
  ];
}

async function objects(port, samples) {
  const queue = 'cold';
  await fill(port, 10_000, 1000, job(queue));
  const bytes = request('POST', '/ojs/v1/jobs', job(queue));
  const connection = await Connection.open(port);
  const timed = async () => {
    const sentAt = performance.now();
    const { status } = await connection.send(bytes);
    if (status !== 201) throw new Error(`The enqueue was answered ${status}.`);
    return performance.now() - sentAt;
  };
  const cold = [];
  const warm = [];
  try {
    for (let n = 0; n < samples; n++) {
      await bench(port, 'evict', queue);
      cold.push(await timed());
      warm.push(await timed());
    }
  } finally {
    connection.close();
  }
  return { cold, warm };
}
