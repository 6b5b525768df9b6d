/**
 * One system of the table, in a process of its own: its server, its producers and its workers. It is told what to measure
 * and answers with the figure; it ends with the process that started it.
 */
import { sizesOf } from './steps.mjs';

const [system, quick, packages] = process.argv.slice(2);

process.once('disconnect', () => process.exit());

let opened;
const ACTIONS = {
  async open() {
    const { open } = await import(`./systems/${system}.mjs`);
    opened = await open({ sizes: sizesOf(quick === 'true'), packages });
    const { skipped, notes, measures = {} } = opened;
    return { skipped, notes, measures: Object.keys(measures) };
  },
  measure: ({ name, round }) => opened.measures[name](round),
  close: () => opened?.close?.(),
};

process.on('message', async ({ id, action, ...told }) => {
  try {
    process.send({ to: id, value: await ACTIONS[action](told) });
  } catch (error) {
    process.send({ to: id, error: String(error?.stack ?? error) });
  }
});
