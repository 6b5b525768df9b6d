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

/** The groups of lines, by what `--only` calls them. */
export const GROUPS = {
  enqueue: 'enqueued one by one, jobs/s',
  batch: 'enqueued in batches, jobs/s',
  pulled: 'pulled, jobs/s',
  retry: 'failed once, retried after 1 ms, jobs/s',
  latency: 'from enqueue to start, ms',
  due: '1,000 due together, start after it, ms',
  pushed: 'pushed to a bound handler, jobs/s',
};

const rates = (group, title, ours, { floor, peers } = {}) => ({ group, title, ours, floor, peers, better: 'more' });
const delays = (group, title, ours, part, { floor, peers }) => ({
  group,
  title,
  ours,
  floor,
  part,
  peers,
  better: 'less',
});

const callers = (count) => `${count} ${count === 1 ? 'caller' : 'callers'}`;

/** The same caller of peers stands beside the client library, over a socket and over HTTP, and beside plain HTTP. */
const single = (count) => [
  rates('enqueue', `${callers(count)}, client on a socket`, `live-${count}`, {
    // So many callers are what the client can do, not the socket: there the floor is reached through it.
    floor: count === 64 ? 'client-64' : `live-${count}`,
    peers: `single-${count}`,
  }),
  rates('enqueue', `${callers(count)}, client library`, `library-${count}`, {
    floor: `library-${count}`,
    peers: `single-${count}`,
  }),
  rates('enqueue', `${callers(count)}, plain HTTP`, `http-${count}`, {
    floor: `single-${count}`,
    peers: `single-${count}`,
  }),
];

const batches = (size, count) => {
  const title = `${size.toLocaleString('en-US')}, ${callers(count)}`;
  const name = `batch-${size}-${count}`;
  const minimal = `minimal-${size}-${count}`;
  return [
    rates('batch', title, name, { floor: name, peers: name }),
    rates('batch', `${title}, return=minimal`, minimal, { floor: minimal, peers: name }),
  ];
};

const pulled = (inHand) => {
  const peers = `pulled-${inHand}`;
  return [
    rates('pulled', `${inHand} in hand, socket`, `socket-${inHand}`, { floor: peers, peers }),
    rates('pulled', `${inHand} in hand, HTTP`, `pulled-http-${inHand}`, {
      floor: `pulled-http-${inHand}`,
      peers,
    }),
  ];
};

/** @type {Line[]} */
export const LINES = [
  ...[1, 16, 64].flatMap(single),
  ...[100, 1000].flatMap((size) => [1, 16].flatMap((count) => batches(size, count))),
  ...[1, 10, 100].flatMap(pulled),
  rates('retry', 'pulled, socket', 'retry-socket', { peers: 'retry' }),
  rates('retry', 'pulled, HTTP', 'retry-http', { peers: 'retry' }),
  rates('retry', 'pushed', 'retry-pushed', { peers: 'retry' }),
  ...['pulled', 'pushed'].flatMap((how) => [
    delays('latency', `${how}, p50`, `start-${how}`, 'p50', { floor: `start-${how}`, peers: 'start' }),
    delays('latency', `${how}, p99`, `start-${how}`, 'p99', { floor: `start-${how}`, peers: 'start' }),
  ]),
  ...['pulled', 'pushed'].flatMap((how) => [
    delays('due', `${how}, p50`, `due-${how}`, 'p50', { peers: 'due' }),
    delays('due', `${how}, the last`, `due-${how}`, 'last', { peers: 'due' }),
  ]),
  rates('pushed', 'batches of 100', 'pushed', { floor: 'pushed' }),
];

/** The system that the others are compared with, the floor, and the peers, by the names of the files in `systems/`. */
export const SYSTEMS = {
  tocsin: 'Tocsin',
  floor: 'floor',
  bullmq: 'BullMQ',
  graphile: 'graphile',
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
