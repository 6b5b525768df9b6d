import { once } from 'node:events';
import { writeSync } from 'node:fs';
import { constants } from 'node:os';
import { confirm } from '@clack/prompts';
import { reasonOf } from './failure';
import type { Screen, Terminal } from './output';

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

/** Alternate screen, no cursor, lines shown in logical order: bidirectional terminals would move columns. */
const TAKE = '\x1b[?1049h\x1b[?25l\x1b[8l\x1b[?7l\x1b[2J';
const GIVE_BACK = '\x1b[?7h\x1b[8h\x1b[0m\x1b[?25h\x1b[?1049l';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

type Listener = Parameters<NodeJS.EventEmitter['on']>[1];

/** The window, given back however the program ends; undefined when input or output is none. */
function processScreen(): Screen | undefined {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY) return undefined;
  let isTaken = false;
  const enter = () => {
    if (isTaken) return;
    isTaken = true;
    stdin.setRawMode(true);
    stdout.write(TAKE);
  };
  const leave = () => {
    if (!isTaken) return;
    isTaken = false;
    try {
      stdin.setRawMode(false);
      // The process may be about to end: what is not written now never is.
      writeSync(stdout.fd, GIVE_BACK);
    } catch {
      // The window is gone.
    }
  };
  return {
    columns: () => stdout.columns || 80,
    rows: () => stdout.rows || 24,
    write: (text) => void stdout.write(text),
    take: ({ typed, redraw, stop }) => {
      const onGone = () => stop(128 + constants.signals.SIGHUP);
      const onContinue = () => {
        enter();
        redraw();
      };
      const listeners: readonly (readonly [emitter: NodeJS.EventEmitter, event: string, listener: Listener])[] = [
        [stdin, 'data', typed],
        [stdin, 'end', onGone],
        [stdout, 'resize', redraw],
        [process, 'SIGCONT', onContinue],
        [process, 'exit', leave],
        ...SIGNALS.map((name) => [process, name, () => stop(128 + constants.signals[name])] as const),
      ];
      stdin.setEncoding('utf8');
      for (const [emitter, event, listener] of listeners) emitter.on(event, listener);
      enter();
      stdin.resume();
      return () => {
        leave();
        stdin.pause();
        for (const [emitter, event, listener] of listeners) emitter.off(event, listener);
      };
    },
    suspend: () => {
      leave();
      process.kill(0, 'SIGTSTP');
    },
  };
}
