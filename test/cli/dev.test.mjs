// `tocsin dev` of a Worker with schedules, which nobody sends a request.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
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
    // What failed names the place in the source.
    const body = JSON.stringify({ type: 'greeting.refused', args: [] });
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(`${url}/ojs/v1/jobs`, { method: 'POST', headers, body });
    const { job } = await answer.json();
    const { error } = await until('its failure', 10_000, async () => {
      const found = await (await fetch(`${url}/ojs/v1/jobs/${job.id}`)).json();
      return found.job.error && found.job;
    });
    const lines = readFileSync(join(root, 'test/cli/worker/index.ts'), 'utf8').split('\n');
    const thrown = lines.findIndex((line) => line.includes('Nobody is greeted.')) + 1;
    assert.match(error.stack.split('\n')[1], new RegExp(`\\(index\\.ts:${thrown}:\\d+\\)$`));
    assert.doesNotMatch(error.stack, /\.wrangler/);
  } finally {
    run.child.kill('SIGINT');
    await run.ended;
    rmSync(state, { recursive: true, force: true });
  }
});
