/** Bad days: what happens to Tocsin while the load goes on, and how soon it is carried as before. */

/** By name: what is said of it, where the jobs run, and for how long a cause lasts, s. */
export const BAD = {
  worker: { title: 'the worker is killed each minute', mode: 'pulled', lasts: 0, run: 'killWorker' },
  runtime: { title: 'the runtime is killed each minute', mode: 'pulled', lasts: 0, run: 'kill' },
  handler: { title: 'the handler answers nothing for 30 s', mode: 'pushed', lasts: 30, run: 'silence' },
  backlog: { title: 'another queue gets a million jobs', mode: 'pulled', lasts: 0, run: 'fillAnother' },
  storage: { title: 'the queue is at its storage bound', mode: 'pulled', lasts: 0, run: 'boundStorage' },
  phases: { title: 'warm-up, clean, pressure, kill, recovery', mode: 'pulled', lasts: 0, run: 'kill' },
};

/** Between two samples. */
const SAMPLE_MS = 1_000;

/** Causes that come back; the others come once, after a sixth of the time. */
const AGAIN = ['worker', 'runtime'];
/** A lease lasts a minute: a job that comes back must not meet the next cause each time. */
const AGAIN_S = 65;

/** Phases of the long-horizon contract, as shares of the whole, with the rate as a factor of the one that was ordered. */
const PHASES = [
  ['warm-up', 0.1, 1],
  ['clean', 0.3, 1],
  ['pressure', 0.2, 2],
  ['kill', 0.1, 1],
  ['recovery', 0.3, 1],
];

/** The order for a bad day: with what happens when, and samples each second. */
export function bad(subject, order) {
  const { seconds, rate } = order;
  const { lasts, run } = BAD[order.bad];
  const happens = () => subject[run]();
  if (order.bad === 'phases') {
    let end = 0;
    const phases = PHASES.map(([name, share, factor]) => {
      const from = end;
      end += share * seconds;
      return { name, from, until: end, factor };
    });
    const phaseAt = (second) => phases.find(({ until }) => second <= until) ?? phases.at(-1);
    const kill = phases.find(({ name }) => name === 'kill');
    return {
      ...order,
      rate: (second) => rate * phaseAt(second).factor,
      phaseAt: (second) => phaseAt(second).name,
      events: [[kill.from, 'kill', happens]],
    };
  }
  const events = [];
  const every = AGAIN.includes(order.bad) ? AGAIN_S : seconds;
  for (let second = Math.min(30, seconds / 6); second < seconds - 5; second += every) {
    events.push([second, order.bad, happens]);
  }
  return { ...order, events, lasts, sampleMs: SAMPLE_MS };
}

/**
 * After how many seconds from the end of each cause as many jobs start as come, and after how many nothing of it is left: no more
 * jobs wait than come in a second. Undefined: not before the next one.
 * @returns both, for each cause
 */
export function recoveries(samples, { events, lasts = 0, rate }) {
  const afterEach = (isWell) =>
    events.map(([second], at) => {
      const end = second + lasts;
      const until = events[at + 1]?.[0] ?? Number.POSITIVE_INFINITY;
      // Most of what a sample at the very end counted was before it.
      const well = samples.find((one) => one.second >= end + SAMPLE_MS / 2_000 && one.second < until && isWell(one));
      return well && Math.round((well.second - end) * 10) / 10;
    });
  const starts = ({ completion_rate }) => completion_rate >= 0.9 * rate;
  return {
    recovered_s: afterEach(starts),
    worked_off_s: afterEach((one) => starts(one) && one.queue_depth <= rate),
  };
}
