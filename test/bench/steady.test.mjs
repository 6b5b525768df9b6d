/** Minutes of the load of `npm run bench -- --steady`: what must hold on any machine, however much else it does. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const RATE = 800;

/** How much the runtime may grow in the second half; what an ended job may take of the storage, and its log beside them; bytes. */
const GROWTH = 1.2;
const STORED = 300;
const LOG = 24 * 2 ** 20;

/** One system under the load, and what holds for all of them. */
async function load(name, minutes) {
  const jobs = 60 * minutes * RATE;
  const directory = mkdtempSync(join(tmpdir(), 'tocsin-steady-'));
  try {
    const file = join(directory, 'report.json');
    const order = `bench/run.mjs --steady --rate ${RATE} --minutes ${minutes} --only ${name} --json`;
    await promisify(execFile)(process.execPath, [...order.split(' '), file]);
    const [result] = JSON.parse(readFileSync(file, 'utf8')).steady;
    const { enqueued, refused, left, stored_mb } = result;
    // The last one may come due a moment after the end.
    assert.ok(enqueued >= jobs - 1, `${enqueued} jobs, not ${jobs}`);
    assert.deepEqual({ refused, left }, { refused: 0, left: 0 });
    assert.ok(stored_mb * 2 ** 20 <= STORED * jobs + LOG, `${stored_mb} MB for ${jobs} jobs`);
    return result;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test('a steady load leaves no job behind, and takes no more memory from minute to minute', {
  timeout: 600_000,
}, async () => {
  const { enqueued, started, samples, rss_mb } = await load('pulled', 2);
  assert.equal(started, enqueued);
  const middle = samples.findLast(({ second }) => second <= 60);
  assert.ok(rss_mb <= GROWTH * middle.rss_mb, `${middle.rss_mb} MB after a minute, ${rss_mb} at the end`);
});

test('the write-ahead log beside pushed jobs is emptied, though single jobs are read', {
  timeout: 600_000,
}, async () => {
  await load('pushed', 1);
});
