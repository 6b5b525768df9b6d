/** What is typed, as names of keys: `j`, `Enter`, `Down`, `C-c`. */
import { own } from '../../job/own';

const NAMED: Readonly<Record<string, string>> = {
  '\r': 'Enter',
  '\n': 'Enter',
  '\t': 'Tab',
  '\x7f': 'Backspace',
  '\b': 'Backspace',
  '\x03': 'C-c',
  '\x0c': 'C-l',
  '\x15': 'C-u',
  '\x1a': 'C-z',
  '\x1b': 'Escape',
  '\x1b[A': 'Up',
  '\x1b[B': 'Down',
  '\x1b[C': 'Right',
  '\x1b[D': 'Left',
  '\x1bOA': 'Up',
  '\x1bOB': 'Down',
  '\x1bOC': 'Right',
  '\x1bOD': 'Left',
  '\x1b[H': 'Home',
  '\x1b[1~': 'Home',
  '\x1bOH': 'Home',
  '\x1b[F': 'End',
  '\x1b[4~': 'End',
  '\x1bOF': 'End',
  '\x1b[5~': 'PageUp',
  '\x1b[6~': 'PageDown',
  '\x1b[Z': 'BackTab',
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a terminal sends
const PIECES = /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1bO[A-Za-z]|\x1b|[\x00-\x1f\x7f]|[^\x00-\x1f\x7f]/gu;

/** The keys in what the terminal has sent at once. Sequences that mean nothing here are left out. */
export function keysIn(bytes: string): string[] {
  return [...bytes.matchAll(PIECES)].flatMap(([piece]) => {
    const name = own(NAMED, piece);
    if (name !== undefined) return [name];
    return piece < ' ' ? [] : [piece];
  });
}
