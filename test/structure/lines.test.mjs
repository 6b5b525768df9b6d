/**
 * How many lines each room of `src` may have. Whoever adds lines takes as many away, or raises the number in the commit that adds
 * them and says there why; whoever takes away lowers it.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

const LINES = {
  across: 5_235,
  allowance: 780,
  cli: 12_195,
  client: 7_679,
  contract: 4_784,
  directory: 3_327,
  dispatch: 1_886,
  durable: 2_259,
  'files beside the rooms': 360,
  handler: 5_107,
  http: 10_223,
  job: 14_370,
  library: 744,
  locks: 479,
  mcp: 175,
  producer: 939,
  queue: 26_362,
  rpc: 1_736,
  testing: 940,
  ui: 12_528,
  workflow: 742,
};

/** All of them together. */
const TOTAL = 113_000;

/** A number that is this much too high is an old one. */
const SPARE = 200;

const counted = {};
for (const path of globSync('**/*.{ts,tsx}', { cwd: SRC })) {
  const room = path.includes('/') ? path.split('/')[0] : 'files beside the rooms';
  counted[room] = (counted[room] ?? 0) + readFileSync(`${SRC}${path}`, 'utf8').split('\n').length - 1;
}

test('each room has its number of lines', () => {
  assert.deepEqual(Object.keys(counted).sort(), Object.keys(LINES).sort());
  for (const [room, lines] of Object.entries(counted)) {
    assert.ok(lines <= LINES[room], `${room} has ${lines} lines, ${lines - LINES[room]} more than its budget`);
    assert.ok(lines > LINES[room] - SPARE, `${room} has ${lines} lines: lower its budget of ${LINES[room]}`);
  }
});

test('all rooms together have theirs', () => {
  const all = Object.values(LINES).reduce((sum, lines) => sum + lines, 0);
  assert.ok(all <= TOTAL, `${all} lines`);
});
