/**
 * The lines of the table: what each is called, and which measure of each system stands in it. Measures are those of
 * `systems/`; peers have one name in common.
 */

/**
 * @typedef {object} Line
 * @property {string} group chosen by `--only`
 * @property {string} title
 * @property {string} ours
 * @property {string} [floor] absent: there is none
 * @property {string} [peers]
 * @property {string} [part] which of several numbers
 * @property {'more' | 'less'} better
 */

const rates = (group, title, ours, { floor, peers } = {}) => ({ group, title, ours, floor, peers, better: 'more' });
const delays = (group, title, ours, part, peers) => ({ group, title, ours, part, peers, better: 'less' });

const callers = (count) => `${count} ${count === 1 ? 'caller' : 'callers'}`;
const thousands = (count) => count.toLocaleString('en-US');

/** @type {Line[]} */
export const LINES = [
  ...[1, 16, 64].flatMap((count) => [
    rates('enqueue', `enqueued one by one, ${callers(count)}, client library, jobs/s`, `library-${count}`, {
      peers: `single-${count}`,
    }),
    rates('enqueue', `the same, plain HTTP, jobs/s`, `http-${count}`, {
      floor: `single-${count}`,
      peers: `single-${count}`,
    }),
  ]),
  ...[100, 1000].flatMap((batch) =>
    [1, 16].flatMap((count) => [
      rates(
        'batch',
        `batches of ${thousands(batch)}, ${callers(count)}, full answers, jobs/s`,
        `batch-${batch}-${count}`,
        {
          floor: `batch-${batch}-${count}`,
          peers: `batch-${batch}-${count}`,
        },
      ),
      rates('batch', `the same, \`Prefer: return=minimal\`, jobs/s`, `minimal-${batch}-${count}`, {
        floor: `minimal-${batch}-${count}`,
        peers: `batch-${batch}-${count}`,
      }),
    ]),
  ),
  ...[1, 10, 100].flatMap((inHand) => [
    rates('pulled', `pulled over a socket, ${inHand} in hand, jobs/s`, `socket-${inHand}`, {
      floor: `pulled-${inHand}`,
      peers: `pulled-${inHand}`,
    }),
    rates('pulled', 'the same over HTTP, jobs/s', `pulled-http-${inHand}`, { peers: `pulled-${inHand}` }),
  ]),
  rates('retry', 'fails once, retried after 1 ms, pulled over a socket, jobs/s', 'retry-socket', { peers: 'retry' }),
  rates('retry', 'the same over HTTP, jobs/s', 'retry-http', { peers: 'retry' }),
  rates('retry', 'the same, pushed, jobs/s', 'retry-pushed', { peers: 'retry' }),
  ...['pulled', 'pushed'].flatMap((how) => [
    delays('latency', `enqueue to ${how} start, p50, ms`, `start-${how}`, 'p50', 'start'),
    delays('latency', 'the same, p99, ms', `start-${how}`, 'p99', 'start'),
  ]),
  ...['pulled', 'pushed'].flatMap((how) => [
    delays('due', `1,000 due together, ${how}: start after it, p50, ms`, `due-${how}`, 'p50', 'due'),
    delays('due', 'the same, the last, ms', `due-${how}`, 'last', 'due'),
  ]),
  rates('pushed', 'pushed to a bound handler, batches of 100, jobs/s', 'pushed'),
];

/** The system that the others are compared with, the floor, and the peers, by the names of the files in `systems/`. */
export const SYSTEMS = {
  tocsin: 'Tocsin',
  floor: 'floor',
  bullmq: 'BullMQ',
  graphile: 'graphile-worker',
  pgboss: 'pg-boss',
  zizq: 'Zizq',
};

/** What a line takes of a system, if anything. */
export function measureOf(line, system) {
  if (system === 'tocsin') return line.ours;
  return system === 'floor' ? line.floor : line.peers;
}

/** The measure without the number that a line shows of it: several lines may share it. */
export const plan = (lines, systems) => {
  const seen = new Set();
  const steps = [];
  for (const line of lines) {
    for (const system of systems) {
      const measure = measureOf(line, system);
      const key = `${system} ${measure}`;
      if (measure === undefined || seen.has(key)) continue;
      seen.add(key);
      steps.push({ system, measure });
    }
  }
  return steps;
};
