/** Bad days: what happens to Tocsin while the load goes on. Each is judged by how soon the load is carried as before. */

/** By name, what is said of it. */
export const BAD = {
  runtime: 'the runtime is killed each minute',
  worker: 'the worker is killed each minute',
  phases: 'warm-up, clean, pressure, kill, recovery',
};

/** Phases of the long-horizon contract, as shares of the whole, with the rate as a factor of the one that was ordered. */
const PHASES = [
  ['warm-up', 0.1, 1],
  ['clean', 0.3, 1],
  ['pressure', 0.2, 2],
  ['kill', 0.1, 1],
  ['recovery', 0.3, 1],
];

/** The order for a day that is bad: with what happens when. */
export function bad(subject, order) {
  const { seconds, rate } = order;
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
      events: [[kill.from, 'kill', subject.kill]],
    };
  }
  const what = order.bad === 'runtime' ? subject.kill : subject.killWorker;
  const events = [];
  for (let second = Math.min(30, seconds / 2); second < seconds - 5; second += 60)
    events.push([second, order.bad, what]);
  return { ...order, events };
}
