/**
 * The clock of a Worker, read from here. It shows whole milliseconds, and is another process's: nothing says that it agrees with
 * ours. Many short exchanges tell how far it is ahead, as in NTP, before and after what is measured by it.
 */
import { Connection, request } from './http.mjs';

const EXCHANGES = 300;
const ASK = request('GET', '/bench/clock');

/**
 * An answer that says `noted` was written while that was the millisecond, after the request was sent and before the answer came.
 * So each exchange bounds the difference from both sides, and the narrowest bounds of many count.
 * @param exchanges `sentAt` and `heardAt` in our clock, `noted` in the other
 * @returns by how many ms the other is `ahead`, and the `error` of that
 */
export function difference(exchanges) {
  const least = Math.max(...exchanges.map(({ noted, heardAt }) => noted - heardAt));
  const most = Math.min(...exchanges.map(({ noted, sentAt }) => noted + 1 - sentAt));
  if (least > most) throw new Error(`A clock was set by ${least - most} ms while it was read.`);
  return { ahead: (least + most) / 2, error: (most - least) / 2 };
}

/** Reads the clock of the Worker at this port, which answers `GET /bench/clock` with epoch ms. Ours is `performance.now()`. */
async function readClock(port) {
  const connection = await Connection.open(port);
  const exchanges = [];
  try {
    for (let n = 0; n < EXCHANGES; n++) {
      const sentAt = performance.now();
      const { body } = await connection.send(ASK);
      exchanges.push({ sentAt, heardAt: performance.now(), noted: Number(body.toString()) });
    }
  } finally {
    connection.close();
  }
  return { at: performance.now(), ...difference(exchanges) };
}

/**
 * Uses the clock of a Worker.
 * @param measure what is measured by it
 * @returns what that resolves to; `ours`, which turns its epoch ms into `performance.now()`; and the `error` of it, in ms. One
 *   clock may go faster than the other: in between, the difference changes evenly
 */
export async function byClockOf(port, measure) {
  const before = await readClock(port);
  const value = await measure();
  const after = await readClock(port);
  const drift = (after.ahead - before.ahead) / (after.at - before.at);
  // What the other clock shows is far from ours: what it is ahead by at first is near enough to say when.
  const ours = (noted) => noted - (before.ahead + drift * (noted - before.ahead - before.at));
  return { value, ours, error: Math.max(before.error, after.error) };
}
