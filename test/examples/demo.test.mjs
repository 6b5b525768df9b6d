// The demo as a user runs it: every job where it belongs, the dashboard until Ctrl-C, and nothing left behind.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { makeFolder, npmRun, root } from './processes.mjs';

const SAMPLES = 'examples/documents/samples';

describe('npm run demo', { timeout: 900_000 }, () => {
  const folder = makeFolder();
  let run;
  let page;
  let shown;
  let exitCode;
  let output;
  let remaining;

  before(async () => {
    run = npmRun('demo', ['--stay'], folder.temporary);
    [, page] = await run.until(/See it in the dashboard: (\S+)/);
    shown = await fetch(page).then((response) => response.text());
    process.kill(-run.child.pid, 'SIGINT');
    exitCode = await run.exit;
    remaining = await run.remaining();
    output = run.output();
  });
  after(() => {
    run?.kill();
    folder.remove();
  });

  /** The row of a job: outcome, attempts, reason. */
  const rowOf = (type, path) => {
    const line = output.split('\n').find((row) => row.startsWith(type) && row.includes(` ${path} `));
    assert.ok(line, `there is no row for ${type} of ${path} in:\n${output}`);
    const [, , outcome, attempts, , reason = ''] = line.split(/ {2,}/);
    return [outcome, Number(attempts), reason];
  };

  it('ends cleanly when it is stopped', () => {
    // 0 where npm's shell becomes the script; where it does not, the signal that ended the shell.
    assert.ok([0, 130, 'SIGINT'].includes(exitCode), output);
    assert.match(output, /^Every job ended as it should\./m);
  });

  it('keeps the dashboard open on what it did', () => {
    assert.match(page, /\/ui\/queues\/documents$/);
    assert.match(shown, /<title>[^<]*Tocsin/);
  });

  it('says how far it is while it runs, and at last that all jobs have ended', () => {
    const bars = Array.from(output.matchAll(/^[█░]{30} (\d+)\/(\d+) /gm), ([, ended, total]) => [+ended, +total]);
    assert.ok(bars.length >= 2, output);
    const [ended, total] = bars.at(-1);
    assert.equal(ended, total);
    assert.ok(total >= 27);
  });

  for (const [type, file, ...row] of [
    ['document.render', 'tidy.md', 'completed', 1, ''],
    ['document.digest', 'tidy.md', 'completed', 1, ''],
    ['link.check', 'tidy.md', 'completed', 1, ''],
    ['document.render', 'empty.md', 'completed', 1, ''],
    ['document.digest', 'empty.md', 'discarded', 1, 'discard_code'],
    ['link.check', 'broken-links.md', 'dead letter', 1, 'unrecoverable'],
    ['link.check', 'missing-page.md', 'dead letter', 1, 'unrecoverable'],
    ['link.check', 'dead-page.md', 'discarded', 4, 'retries_exhausted'],
    ['link.check', 'flaky-page.md', 'completed', 2, ''],
    ['link.check', 'slow-page.md', 'completed', 2, ''],
    ['link.check', 'flaky-and-slow.md', 'completed', 3, ''],
  ]) {
    it(`shows ${type} of ${file} as ${row[0]} after ${row[1]}`, () => {
      assert.deepEqual(rowOf(type, `${SAMPLES}/${file}`), row);
    });
  }

  it('gives every other document of the project its three jobs, too', () => {
    const documents = new Set(Array.from(output.matchAll(/^document\.render {2}(\S+\.md) /gm), ([, path]) => path));
    assert.ok(documents.has('README.md'));
    for (const path of documents) {
      if (path.startsWith(SAMPLES)) continue;
      assert.equal(rowOf('document.digest', path)[0], 'completed');
      // A broken link in a document is for its author to mend; that it is found is right.
      assert.match(rowOf('link.check', path)[0], /^(completed|dead letter)$/);
    }
  });

  it('adds the jobs up', () => {
    const [, jobs, completed, discarded, dead] = /^all +(\d+) +(\d+) +(\d+) +(\d+)/m.exec(output) ?? [];
    assert.equal(Number(completed) + Number(discarded) + Number(dead), Number(jobs));
    assert.equal(Number(discarded), 2);
    assert.ok(Number(dead) >= 2);
  });

  it('shows the numbers that its page shows; those it leaves out grow with the documents', () => {
    const totals = (text) => {
      const lines = text.split('\n').map((line) => line.trim().split(/ {2,}/));
      const head = lines.findIndex((cells) => cells[0] === 'type' && cells[1] === 'jobs');
      return lines.slice(head, head + 6).filter((cells) => cells.length === 7);
    };
    const shown = totals(readFileSync(join(root, 'docs/start/demo.md'), 'utf8'));
    const printed = totals(output);
    assert.equal(printed.length, 5, output);
    const leftOut = printed.map((cells, row) =>
      cells.map((cell, column) => (shown[row]?.[column] === '…' ? '…' : cell)),
    );
    assert.deepEqual(shown, leftOut);
  });

  it('tells the story of one job: each attempt, its error and the next run', () => {
    const story = output.slice(output.indexOf('One job in full'));
    const milestones = [
      /^attempt 1 .* failed after \d+ ms$/m,
      /^ +PageUnavailable: http:\/\/pages\.example\/flaky\/bad-day answered 503$/m,
      /^ +next run at [\d:.]+, after 500 ms$/m,
      /^attempt 2 .* failed after \d+ ms$/m,
      /^ +timeout: /m,
      /^ +next run at [\d:.]+, after 1000 ms$/m,
      /^attempt 3 .* started$/m,
      /^completed .*"visited":2/m,
    ].map((pattern) => story.search(pattern));
    assert.ok(!milestones.includes(-1), story);
    assert.deepEqual(
      milestones,
      milestones.toSorted((a, b) => a - b),
    );
  });

  it('leaves no process and no file behind', () => {
    assert.deepEqual(remaining, []);
    // Node's own cache of compiled modules is meant to stay.
    assert.deepEqual(
      readdirSync(folder.temporary).filter((name) => name !== 'node-compile-cache'),
      [],
    );
  });
});
