// The development start and the demo in a colour terminal, where wrangler prints in colours.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { inTerminal, lacksTerminal } from '../cli/pty.mjs';
import { FREE_PORTS } from '../docs/dev.mjs';
import { makeFolder, root } from './processes.mjs';

const lacking = lacksTerminal();
if (lacking) console.log(`npm start in a terminal is left out: ${lacking}`);

describe('in a terminal', { skip: lacking, timeout: 600_000 }, () => {
  const folder = makeFolder();
  const runs = [];
  after(async () => {
    for (const run of runs) run.kill();
    await Promise.all(runs.map(({ ended }) => ended));
    folder.remove();
  });

  const npm = (script, args, columns) => {
    const env = {
      TMPDIR: folder.temporary,
      WRANGLER_REGISTRY_PATH: join(folder.path, 'registry'),
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    };
    const run = inTerminal(['npm', 'run', '--silent', script, '--', ...args], { columns, cwd: root, env });
    runs.push(run);
    return run;
  };

  for (const columns of [120, 60]) {
    it(`npm start becomes ready, and ends at Ctrl-C, with ${columns} columns`, async () => {
      const run = npm('start', [...FREE_PORTS, '--persist-to', join(folder.path, `state-${columns}`)], columns);
      const [, url] = await run.until(/Tocsin is ready at (http:\S+)/);
      assert.ok(run.raw.includes('\x1b['), 'it prints in colours');
      assert.equal((await fetch(`${url}/ojs/v1/health`)).status, 200);
      const ports = run.text.match(/http:\/\/(?:localhost|127\.0\.0\.1):\d+/g).map((address) => new URL(address).port);
      assert.deepEqual(new Set(ports), new Set([new URL(url).port]), 'no internal port is shown');
      run.type('\x03');
      assert.ok([0, 130].includes(await run.ended), run.text);
      assert.ok(run.isRestored());
    });

    it(`npm run demo draws one line of progress, with ${columns} columns`, async () => {
      const run = npm('demo', ['--end'], columns);
      assert.equal(await run.ended, 0, run.text);
      const drawn = run.raw.split('\r\x1b[2K').slice(1);
      assert.ok(drawn.length > 0);
      for (const line of drawn.slice(0, -1)) assert.ok(line.length < columns && !line.includes('\n'), line);
      assert.ok(run.isRestored());
    });
  }
});
