/** A peer's driver runs in a process of its own and prints its result as the last line. */
import { start, stop } from '../servers/process.mjs';

/** Runs a driver to its end and answers its result. @throws when it fails or takes longer than `limitMs` */
export async function drive(file, args, limitMs) {
  const state = start(process.execPath, [file, ...args]);
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve('late'), limitMs);
  });
  try {
    const first = await Promise.race([state.exited, late]);
    const line = state.output.trimEnd().split('\n').at(-1) ?? '';
    if (first !== 'late' && line.startsWith('{')) return JSON.parse(line);
    throw new Error(`${first === 'late' ? `No result within ${limitMs} ms` : 'No result'}:\n${state.output}`);
  } finally {
    clearTimeout(timer);
    await stop(state);
  }
}
