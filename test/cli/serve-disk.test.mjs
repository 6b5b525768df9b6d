/** `tocsin serve` on a disk without room. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { kit } from './serve/kit.mjs';

const BLOCK = Buffer.alloc(4_096);

/** Takes all room of a disk. @returns gives it back */
function fill(disk) {
  const path = join(disk, 'rest');
  const file = openSync(path, 'w');
  try {
    for (;;) writeSync(file, BLOCK);
  } catch (error) {
    assert.equal(error.code, 'ENOSPC');
  }
  return () => {
    closeSync(file);
    rmSync(path);
  };
}

let tocsin;
let disk;
let isMounted;

before(async () => {
  tocsin = await kit();
  disk = join(tocsin.folder, 'disk');
  mkdirSync(disk);
  isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'tmpfs', disk]).status === 0;
});

after(async () => {
  await tocsin.close().catch(() => undefined);
  if (isMounted) spawnSync('umount', ['-l', disk]);
  rmSync(tocsin.folder, { recursive: true, force: true });
});

describe('tocsin serve on a full disk', () => {
  it('tells callers and probes why, keeps what it took, and continues when there is room', async (test) => {
    if (!isMounted) return test.skip('a disk of its own needs root');
    const server = await tocsin.serve(['--state', join(disk, 'state')]);
    const large = { type: 'any.job', args: ['x'.repeat(100_000)] };
    const id = await server.add({ type: 'any.job', args: ['kept'] });
    const free = fill(disk);
    const { status, body } = await server.call('POST', '/jobs', large);
    assert.deepEqual([status, body.error.code, body.error.type], [503, 'unavailable', 'disk_full']);
    const health = await server.call('GET', '/health');
    assert.deepEqual([health.status, health.body.backend.reason.message], [503, 'The storage of this server is full.']);
    free();
    const wellBy = performance.now() + 60_000;
    while ((await server.call('GET', '/health')).status !== 200) {
      assert.ok(performance.now() < wellBy, 'it stays unhealthy');
      await pause(200);
    }
    await server.add(large);
    const { body: fetched } = await server.call('POST', '/workers/fetch', { queues: ['default'] });
    assert.deepEqual([fetched.jobs[0].id, fetched.jobs[0].args], [id, ['kept']]);
    server.child.kill('SIGTERM');
    assert.equal(await server.ended, 0, server.stderr);
  });
});
