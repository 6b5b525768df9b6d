/** Keeps a development server running: one that ends by itself is started again where it was. */
import { startDevelopment } from './wrangler.mjs';

/** A server that ends sooner than this after it was ready has not served, in ms. */
const SERVED_MS = 5_000;

/** Ends in a row without having served, after which there is no point in another start. */
const MAX_ENDS = 3;

/**
 * Starts `wrangler dev`, and starts it again at the same port when it ends without being told to. Jobs are stored, so
 * they go on. A server that was never ready is not started again: its configuration is wrong, or its port is taken.
 *
 * @param {string[]} args further arguments of wrangler
 * @param {(chunk: Buffer | string) => void} onOutput is given all that wrangler prints
 * @param {Record<string, string>} [environment]
 * @param {typeof startDevelopment} [start]
 * @returns {import('./wrangler.mjs').Development}
 */
export function keepDevelopment(args, onOutput, environment = {}, start = startDevelopment) {
  let stopping = false;
  let current = start(args, onOutput, environment);
  const { ready } = current;

  /** @returns the exit code of the last one */
  async function keep() {
    const url = await ready.catch(() => undefined);
    for (let ends = 0; ; ) {
      const readyAt = await current.ready.then(Date.now, () => Number.POSITIVE_INFINITY);
      const code = await current.ended;
      ends = Date.now() - readyAt >= SERVED_MS ? 0 : ends + 1;
      if (stopping || url === undefined || ends >= MAX_ENDS) return code;
      onOutput(`\nThe development server ended with code ${code}. It starts again.\n`);
      current = start(atPort(args, new URL(url).port), onOutput, environment);
    }
  }

  return {
    ready,
    ended: keep(),
    stop: () => {
      stopping = true;
      return current.stop();
    },
  };
}

/** The arguments with this port in place of the one that was asked for. */
function atPort(args, port) {
  const kept = args.filter((arg, index) => !/^--port(=|$)/.test(arg) && args[index - 1] !== '--port');
  return [...kept, '--port', port];
}
