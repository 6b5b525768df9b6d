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
  access: 1_008,
  across: 5_326,
  allowance: 774,
  cli: 11_797,
  client: 7_631,
  contract: 4_900,
  directory: 3_318,
  dispatch: 1_881,
  durable: 2_404,
  export: 582,
  'files beside the rooms': 539,
  handler: 5_344,
  http: 10_549,
  job: 9_494,
  library: 734,
  locks: 481,
  mcp: 175,
  metrics: 403,
  notifications: 753,
  ojs: 111,
  pools: 150,
  producer: 939,
  queue: 26_377,
  rpc: 1_721,
  schedules: 911,
  schemas: 1_026,
  testing: 958,
  ui: 11_745,
  workflow: 742,
};

/** All of them together. */
const TOTAL = 112_773;

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
