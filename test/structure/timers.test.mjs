/** The runtime keeps something of each timer that is cleared, for as long as the object is in memory: `durable/timers.ts` clears none. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** Code that runs in objects. */
const ROOMS = [
  'across',
  'allowance',
  'directory',
  'dispatch',
  'durable',
  'locks',
  'pools',
  'queue',
  'schedules',
  'workflow',
];

/** Who clears timers, in how many places. */
const MAY = {
  // When a feed is closed, which a second later needs no timer.
  'across/feed/feed.ts': 1,
  // Where an alarm could not be set.
  'durable/alarm-clock.ts': 1,
  // That of a request.
  'durable/timers.ts': 1,
};

test('no timer of an object is cleared', () => {
  const files = ROOMS.flatMap((room) =>
    readdirSync(join(SRC, room), { recursive: true }).map((name) => join(room, name)),
  );
  const counts = files
    .filter((name) => name.endsWith('.ts'))
    .map((file) => [file, readFileSync(join(SRC, file), 'utf8').match(/\bclear(?:Timeout|Interval)\(/g)?.length ?? 0]);
  assert.deepEqual(Object.fromEntries(counts.filter(([, count]) => count > 0)), MAY);
});
