/**
 * Loads one system, in a process of its own so that its CPU is that of the client alone. Prints a line of JSON for each sample, and
 * one with the summary.
 */
import { bad, recoveries } from './bad.mjs';
import { steadily } from './load.mjs';

const order = JSON.parse(process.argv[2]);
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

try {
  const { open } = await import(`./systems/${order.system}.mjs`);
  const subject = await open(order);
  if (subject.skipped !== undefined) print({ skipped: subject.skipped });
  else {
    print({ notes: subject.notes });
    const plan = order.bad === undefined ? order : bad(subject, order);
    try {
      const { summary, samples } = await steadily(subject, plan, (sample) => print({ sample }));
      print({ summary: { ...summary, ...(order.bad && order.bad !== 'phases' && recoveries(samples, plan)) } });
    } finally {
      await subject.close();
    }
  }
  process.exit(0);
} catch (error) {
  print({ error: String(error?.stack ?? error) });
  process.exit(1);
}
