// The programs in Python on the page about other languages, run with the SDK that pip finds. Where it finds none, the recorded
// calls of test/end-to-end/ojs-workers.test.ts are the test. OJS_PYTHON_SDK names another source for pip, such as a checkout.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { dev, end, launch, until } from './dev.mjs';
import { codeOf } from './text.mjs';

/** As the page installs it. */
const SDK = process.env.OJS_PYTHON_SDK ?? 'git+https://github.com/openjobspec/ojs-python-sdk';
/** How long an install, and a job, may take, in ms. */
const INSTALL_MS = 120_000;
const RUN_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), 'tocsin-python-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const run = (command, args) => spawnSync(command, args, { cwd: folder, encoding: 'utf8', timeout: INSTALL_MS });

/** @returns {string | undefined} a Python that has the SDK; undefined where there is none, or no SDK for it */
function pythonWithSdk() {
  const isNewEnough = 'import sys; sys.exit(sys.version_info < (3, 11))';
  if (run('python3', ['-c', isNewEnough]).status !== 0) return undefined;
  if (run('python3', ['-m', 'venv', 'venv']).status !== 0) return undefined;
  const python = join(folder, 'venv/bin/python');
  const pip = run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', SDK]);
  return pip.status === 0 ? python : undefined;
}

describe('the programs in Python', { timeout: 2 * INSTALL_MS + 3 * RUN_MS }, () => {
  it('enqueue a job and run it', async (t) => {
    const python = pythonWithSdk();
    if (!python)
      return t.skip(`pip finds no ${SDK} for Python 3.11 or newer: its calls are tested as they were recorded`);
    const programs = codeOf('docs/guides/other-languages.md').blocks.filter(({ lang }) => lang === 'python');
    for (const { text } of programs) writeFileSync(join(folder, /^# (\w+\.py)\n/.exec(text)[1]), text);

    const server = await dev(['wrangler.toml'], { state: join(folder, 'state'), registry: join(folder, 'registry') });
    const env = { ...process.env, TOCSIN_URL: server.url, TOCSIN_KEY: 'none' };
    const worker = launch(python, ['work.py'], { cwd: folder, env });
    try {
      const producer = launch(python, ['produce.py'], { cwd: folder, env });
      assert.equal(await producer.exited, 0, producer.output);
      const [id] = producer.output.split(' ');
      const job = await until('the completion of the job', RUN_MS, async () => {
        const { job } = await server.call('GET', `/jobs/${id}`);
        return job.state === 'completed' && job;
      }).catch((error) => assert.fail(`${error.message}\n${worker.output}`));
      assert.deepEqual(job.result, { sent_to: 'ada@example.com' });
    } finally {
      await end(worker);
      await server.stop();
    }
  });
});
