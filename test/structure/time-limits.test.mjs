/** A limit of time in a test is for a test that hangs: on a busy machine everything else takes many times as long. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const root = new URL('../..', import.meta.url);
const read = (pattern) =>
  globSync(pattern, { cwd: root }).map((path) => ({ path, text: readFileSync(new URL(path, root), 'utf8') }));

/** A limit of a test or of a group of tests, as `vitest` and `node --test` take it. */
const LIMIT =
  /\b(?:it|test|describe)(?:\.\w+)*\([^\n]*\{[^}\n]*\btimeout: (?<option>[\d_]+)(?! \*)\b|^\s*\}, (?<last>[\d_]+)\);$/gm;

/** What hangs has done nothing for this long, ms. */
const HANG_MS = 300_000;

/** An assertion about how long something took by the real clock. */
const TOOK =
  /\b(?:expect|assert(?:\.\w+)?)\((?:performance\.now|Date\.now)\(\) - |\b(?:expect|assert(?:\.\w+)?)\([^\n;]*took\w*\b[^\n;]*(?:<|toBeLess)/g;

test('no test has a limit that a busy machine reaches', () => {
  const short = read('test/**/*.test.{ts,mjs}').flatMap(({ path, text }) =>
    [...text.matchAll(LIMIT)]
      .map(({ groups }) => Number((groups.option ?? groups.last).replaceAll('_', '')))
      .filter((ms) => ms < HANG_MS)
      .map((ms) => `${path}: ${ms} ms`),
  );
  assert.deepEqual(short, []);
});

test('no test asserts how long something took by the real clock', () => {
  const timed = read('test/**/*.test.{ts,mjs}').flatMap(({ path, text }) =>
    [...text.matchAll(TOOK)].map(([found]) => `${path}: ${found}`),
  );
  assert.deepEqual(timed, []);
});
