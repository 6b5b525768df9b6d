/** The other end of `child.mjs`. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { within } from './steps.mjs';

const FILE = fileURLToPath(new URL('child.mjs', import.meta.url));
const OPEN_MS = 60_000;
const MEASURE_MS = 180_000;
const CLOSE_MS = 20_000;

/**
 * Starts a system.
 * @returns its `notes`, `has(measure)`, `measure(name, round)` and `close()`; or why it was `skipped`
 */
export async function openSystem(name, { quick, packages }) {
  const child = fork(FILE, [name, String(quick), packages ?? ''], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said = (said + chunk).slice(-4_000);
  });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  // An answer that comes too late must not be taken for that to the next question.
  let asked = 0;
  const ask = (message, ms) => {
    const id = ++asked;
    const answer = new Promise((resolve, reject) => {
      const hear = ({ to, value, error }) => {
        if (to !== id) return;
        child.off('message', hear);
        if (error === undefined) resolve(value);
        else reject(new Error(error));
      };
      child.on('message', hear);
      gone.then(() => reject(new Error(`The process of ${name} ended:\n${said}`)));
      child.send({ ...message, id }, (error) => error && reject(error));
    });
    return within(answer, ms, `an answer of ${name}`);
  };
  const close = async () => {
    await ask({ action: 'close' }, CLOSE_MS).catch((error) => console.error(`${name}: ${error.message}`));
    if (child.connected) child.disconnect();
    await gone;
  };
  try {
    const { skipped, notes, measures } = await ask({ action: 'open' }, OPEN_MS);
    if (skipped !== undefined) {
      await close();
      return { skipped };
    }
    return {
      notes,
      has: (measure) => measures.includes(measure),
      measure: (measure, round) => ask({ action: 'measure', name: measure, round }, MEASURE_MS),
      close,
    };
  } catch (error) {
    if (child.connected) child.disconnect();
    throw error;
  }
}
