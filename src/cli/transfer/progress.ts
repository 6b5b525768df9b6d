/** One line with the progress of a long command, for a human at a terminal. */
import type { Terminal } from '../output';
import { cutTo } from '../top/text';

/** Characters of the bar, and the interval between two looks, ms. */
const BAR = 24;
const EVERY_MS = 100;

const CLEAR = '\r\u001b[K';

export class ProgressLine {
  private readonly begun: number;
  private shownAt = 0;
  private isShown = false;

  /** @param total the number of jobs, as far as it is known; undefined: it is not known at all */
  constructor(
    private readonly terminal: Terminal,
    private readonly what: string,
    private readonly total: number | undefined,
  ) {
    this.begun = terminal.now();
  }

  at(done: number): void {
    const { terminal, what, total } = this;
    const now = terminal.now();
    if (!terminal.isWatched || now - this.shownAt < EVERY_MS) return;
    this.shownAt = now;
    this.isShown = true;
    // A line that the window wraps could not be removed.
    terminal.err(`${CLEAR}${cutTo(lineOf(what, done, total, now - this.begun), terminal.columns - 1)}`);
  }

  end(): void {
    if (this.isShown) this.terminal.err(CLEAR);
  }
}

/** @param ms since the beginning */
export function lineOf(what: string, done: number, total: number | undefined, ms: number): string {
  const speed = ms > 0 ? `  ${Math.round((done * 1000) / ms).toLocaleString('en')}/s` : '';
  if (total === undefined) return `${what}  ${done.toLocaleString('en')} jobs${speed}`;
  const part = Math.min(1, done / Math.max(1, total));
  const full = Math.round(part * BAR);
  const counts = `${done.toLocaleString('en')} of ${Math.max(done, total).toLocaleString('en')} jobs`;
  return `${what}  [${'='.repeat(full)}${' '.repeat(BAR - full)}] ${Math.floor(part * 100)}%  ${counts}${speed}`;
}
