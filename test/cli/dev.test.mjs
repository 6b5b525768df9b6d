// `tocsin dev` of a Worker with schedules, which nobody sends a request.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { QUIET, root, until } from '../docs/dev.mjs';
import { start } from './cli.mjs';

const LIMIT_MS = 300_000;

it('the development server applies what the code declares', { timeout: 2 * LIMIT_MS }, async () => {
  const state = mkdtempSync(join(tmpdir(), 'tocsin-dev-'));
  const more = ['--inspector-port', '0', '--persist-to', state];
  const args = ['dev', '--json', '--no-open', ...more];
  const run = await start(args, { cwd: join(root, 'test/cli/worker'), env: QUIET });
  try {
    const line = await until('the queue', LIMIT_MS, async () => {
      assert.equal(run.child.exitCode, null, run.stderr);
      return run.stdout;
    });
    const { url } = JSON.parse(line);
    // Looking changes nothing.
    const look = async () => await (await fetch(`${url}/ojs/v1/admin/deployment`)).json();
    const { crons } = await until('its schedules', 10_000, async () => {
      const found = await look();
      return found.in_effect && found;
    });
    assert.deepEqual(crons, [{ name: 'nightly', state: 'declared', enabled: true }]);
  } finally {
    run.child.kill('SIGINT');
    await run.ended;
    rmSync(state, { recursive: true, force: true });
  }
});
