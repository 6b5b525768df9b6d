/** Two minutes of the load of `npm run bench -- --steady`: what must hold on any machine, however much else it does. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const RATE = 800;
const MINUTES = 2;
const JOBS = 60 * MINUTES * RATE;

/** How much the runtime may grow in the second minute; what an ended job may take of the storage, and its log beside them; bytes. */
const GROWTH = 1.2;
const STORED = 300;
const LOG = 24 * 2 ** 20;

test('a steady load leaves no job behind, and takes no more memory from minute to minute', {
  timeout: 600_000,
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tocsin-steady-'));
  try {
    const file = join(directory, 'report.json');
    const order = `bench/run.mjs --steady --rate ${RATE} --minutes ${MINUTES} --only pulled --json`;
    await promisify(execFile)(process.execPath, [...order.split(' '), file]);
    const [result] = JSON.parse(readFileSync(file, 'utf8')).steady;
    const { enqueued, started, refused, left, samples, stored_mb, rss_mb } = result;
    // The last one may come due a moment after the end.
    assert.ok(enqueued >= JOBS - 1, `${enqueued} jobs, not ${JOBS}`);
    assert.deepEqual({ started, refused, left }, { started: enqueued, refused: 0, left: 0 });
    const middle = samples.findLast(({ second }) => second <= 30 * MINUTES);
    assert.ok(rss_mb <= GROWTH * middle.rss_mb, `${middle.rss_mb} MB after a minute, ${rss_mb} at the end`);
    assert.ok(stored_mb * 2 ** 20 <= STORED * JOBS + LOG, `${stored_mb} MB for ${JOBS} jobs`);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
