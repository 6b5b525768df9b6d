import { once } from 'node:events';
import { confirm } from '@clack/prompts';
import { reasonOf } from './failure';
import type { Terminal } from './output';
import { processScreen } from './screen';

export function processTerminal(): Terminal {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that has seen enough, like `head`, is not a failure.
    if (error.code === 'EPIPE') process.exit(0);
    process.stderr.write(`tocsin: The output cannot be written: ${reasonOf(error)}.\n`, () => process.exit(1));
  });
  // No one is left to read it.
  process.stderr.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exit(1);
  });
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    env: process.env,
    interactive: process.stdin.isTTY === true && process.stdout.isTTY === true && !process.env.CI,
    isWatched: process.stderr.isTTY === true,
    get columns() {
      return process.stderr.columns || 80;
    },
    drained: async () => {
      if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain');
    },
    confirm: async (message) => (await confirm({ message })) === true,
    interrupted: () => {
      const controller = new AbortController();
      process.once('SIGINT', () => controller.abort());
      return controller.signal;
    },
    now: Date.now,
    warnings: [],
    screen: processScreen(),
  };
}
