/** The window that the program was started in, taken over for a while. It is given back however the program ends. */
import { writeSync } from 'node:fs';
import { constants } from 'node:os';
import type { Screen } from './output';

/** Alternate screen, no cursor, lines shown in logical order: bidirectional terminals would move columns. */
const TAKE = '\x1b[?1049h\x1b[?25l\x1b[8l\x1b[?7l\x1b[2J';
const GIVE_BACK = '\x1b[?7h\x1b[8h\x1b[0m\x1b[?25h\x1b[?1049l';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

type Listener = Parameters<NodeJS.EventEmitter['on']>[1];

/** The window; undefined when input or output is none. */
export function processScreen(): Screen | undefined {
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
