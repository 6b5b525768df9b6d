/**
 * What a cluster of `tocsin serve --cluster` carries: 1, 2 and 3 processes with 1, 8 and 64 queues. Jobs are enqueued one by one
 * and in batches of 100, then fetched by 100, over connections to all processes. The bucket is in memory, so a commit
 * costs a request over loopback.
 *
 *     node bench/cluster.mjs [--quick]
 *
 * All processes, the bucket and the load share this machine: with two cores, more processes are not faster here.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { layOut } from '../test/cli/serve/kit.mjs';
import { makeMembers } from '../test/cluster/members.mjs';
import { Bucket } from '../test/cluster/s3.mjs';
import { Connection, request } from './http.mjs';
import { block } from './report.mjs';
import { rate } from './stats.mjs';

const LENGTH_MS = process.argv.includes('--quick') ? 1_000 : 5_000;
const CONNECTIONS = 16;
const BATCH = 100;

const folder = mkdtempSync(join(tmpdir(), 'tocsin-cluster-bench-'));
const program = await layOut(join(folder, 'package'));
const rows = [];

/** Sends requests over all connections for a while. @returns how many were answered, by what `count` says of each, and ms */
async function load(connections, make, count) {
  const started = performance.now();
  let total = 0;
  await Promise.all(
    connections.map(async (connection, at) => {
      for (let turn = at; performance.now() - started < LENGTH_MS; turn++) {
        const { status, body } = await connection.send(make(turn));
        if (status >= 300) throw new Error(`${status} ${body}`);
        total += count(body);
      }
    }),
  );
  return { total, ms: performance.now() - started };
}

try {
  for (const processes of [1, 2, 3]) {
    const bucket = new Bucket();
    const where = join(folder, `of-${processes}`);
    const members = await makeMembers({ program, folder: where, count: processes, bucket, name: 's3://bucket/bench' });
    for (const member of members) await member.start();
    for (const queues of [1, 8, 64]) {
      const names = Array.from({ length: queues }, (_, at) => `bench-${queues}-${at}`);
      const queueAt = (turn) => names[turn % queues];
      // Each queue is made through another process, which becomes its owner.
      for (const [at, queue] of names.entries()) {
        await members[at % processes].call('PUT', `/queues/${queue}/config`, { max_connections: 1 });
      }
      const open = (_, at) => Connection.open(members[at % processes].port);
      const connections = await Promise.all(Array.from({ length: CONNECTIONS }, open));
      const cpu = () => members.map((member) => member.cpuMs);
      const [before, requests] = [cpu(), { ...bucket.requests }];
      const job = (turn) => ({ type: 'bench.job', args: [], options: { queue: queueAt(turn) } });
      const single = await load(
        connections,
        (turn) => request('POST', '/ojs/v1/jobs', job(turn)),
        () => 1,
      );
      const puts = ((bucket.requests.PUT ?? 0) - (requests.PUT ?? 0)) / single.total;
      const used = cpu().map((ms, at) => `${Math.round((100 * (ms - before[at])) / single.ms)} %`);
      const batches = await load(
        connections,
        (turn) => request('POST', '/ojs/v1/jobs/batch', { jobs: Array(BATCH).fill(job(turn)) }),
        () => BATCH,
      );
      const fetched = await load(
        connections,
        (turn) => request('POST', '/ojs/v1/workers/fetch', { queues: [queueAt(turn)], count: BATCH }),
        (body) => JSON.parse(body).jobs.length,
      );
      for (const connection of connections) connection.close();
      rows.push({
        ...{ processes, queues, 'enqueues/s': rate(single.total, single.ms), 'puts a job': puts.toFixed(2) },
        ...{ 'CPU of each': used.join(', '), 'in batches/s': rate(batches.total, batches.ms) },
        'fetched/s': rate(fetched.total, fetched.ms),
      });
    }
    for (const member of members) await member.kill();
    bucket.close();
  }
  const title = `A cluster (load average ${loadavg()[0].toFixed(0)}, ${availableParallelism()} cores)`;
  console.log(
    block(
      title,
      Object.keys(rows[0]),
      rows.map((row) => Object.values(row).map(String)),
    ),
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
