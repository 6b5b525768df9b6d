/** Where a command reads and writes, so that tests can look on. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  env: Readonly<Record<string, string | undefined>>;
  /** May it ask questions and open a browser? */
  interactive: boolean;
  /** Does a human see what goes to standard error? */
  isWatched?: boolean;
  columns: number;
  /** Waits until what was written is no longer in memory. */
  drained?(): Promise<void>;
  confirm(question: string): Promise<boolean>;
  /** Fires at Ctrl-C, which then no longer ends the program. */
  interrupted(): AbortSignal;
  /** Epoch ms. */
  now(): number;
  /** What the server has warned of, for the next line of JSON. */
  warnings: string[];
  screen?: Screen | undefined;
}

/** A window that a program draws on and that reports each key. */
export interface Screen {
  columns(): number;
  rows(): number;
  write(text: string): void;
  /**
   * Takes the window over until the returned function is called, or the process ends.
   * @param listener gets what is typed and redraw requests @param listener.stop the process must stop
   */
  take(listener: { typed(bytes: string): void; redraw(): void; stop(exitCode: number): void }): () => void;
  /** Gives the window back until the shell continues the program. */
  suspend(): void;
}

/** Longest value of a cell, in characters; not of the first one, which other commands take. */
const MAX_CELL = 60;

/** Columns as wide as their longest cell; the last one is not padded: `table(['QUEUE', 'WAITING'], [['mail', 12]])` */
export function table(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = [head, ...rows].map((row) =>
    row.map((cell, column) => oneLine(cell, column > 0 ? MAX_CELL : undefined)),
  );
  const numeric = head.map((_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number'));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const padded = (cell: string, column: number) =>
    numeric[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return cells.map((row) => row.map(padded).join('  ').trimEnd()).join('\n');
}

export type Fact = readonly [name: string, value: unknown];

/** Longest value among facts that are shown in brief, in characters. */
const MAX_FACT = 400;

/** {@link facts} with long values cut unless `full`, and whether any was cut. */
export function brief(entries: readonly Fact[], full: boolean): [text: string, isCut: boolean] {
  const isLong = ([, value]: Fact) => !full && value !== undefined && textOf(value).length > MAX_FACT;
  const cut = (fact: Fact): Fact => (isLong(fact) ? [fact[0], `${textOf(fact[1]).slice(0, MAX_FACT)}…`] : fact);
  return [facts(entries.map(cut)), entries.some(isLong)];
}

/** Names and values below each other; undefined values are left out. */
export function facts(entries: readonly Fact[]): string {
  const shown = entries.filter(([, value]) => value !== undefined && value !== '');
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  const indented = (value: unknown) => textOf(value).replaceAll('\n', `\n${' '.repeat(width + 2)}`);
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${indented(value)}`).join('\n');
}

/** A value as text: strings as they are, anything else as JSON. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));

function oneLine(value: unknown, longest = Number.POSITIVE_INFINITY): string {
  const text = onOneLine(textOf(value ?? ''));
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
}

/** Characters that steer a terminal or turn the direction of a line. */
const STEERING =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Text without characters that steer the terminal: producers write what they like. */
export const printable = (text: string): string => text.replace(STEERING, '�');

/** {@link printable} text on one line: a line end could pass for the end of the message. */
export const onOneLine = (text: string): string => printable(text.replace(/\s+/g, ' '));

/** Parts of a line, none of which ends it. */
export const lineOf = (parts: readonly unknown[]): string => parts.join('  ').replace(/\s*\n\s*/g, ' ');

/** JSON on one line, in which these characters are escaped. */
export function jsonText(value: unknown): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(STEERING, escaped);
}

/** Says something beside the answer. */
export const notice = (terminal: Pick<Terminal, 'err'>, text: string): void => terminal.err(`${printable(text)}\n`);

/** A name as it can be pasted into a shell: names of signals and targets may have any characters. */
export const shellWord = (name: string): string =>
  /^[\w@%+=:,./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;

const UNITS = Object.entries({ d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 });

/** A length of time in its two largest units: `3d4h`, `12m5s`, `40s`. */
export function lengthText(ms: number): string {
  const whole = Math.round(Math.abs(ms) / 1000) * 1000;
  const first = UNITS.findIndex(([, unit]) => whole >= unit);
  if (first < 0) return '0s';
  const parts: string[] = [];
  let left = whole;
  for (const [name, unit] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(left / unit);
    left -= count * unit;
    if (count > 0) parts.push(`${count}${name}`);
  }
  return parts.join('');
}

/** A time beside now: `3m5s ago`, `in 2h`. Anything that is not a time stays as it is. */
export function whenText(time: string | undefined, now: number): string | undefined {
  if (time === undefined) return undefined;
  const at = Date.parse(time);
  if (Number.isNaN(at)) return time;
  return at > now ? `in ${lengthText(at - now)}` : `${lengthText(now - at)} ago`;
}

/** {@link whenText} with the time itself, for a single job. */
export const timeText = (time: string | undefined, now: number): string | undefined =>
  time === undefined ? undefined : `${time} (${whenText(time, now)})`;

/** A sentence of the server with its moments beside now: `It continues without it in 55m41s.` */
export const readable = (text: string, now: number): string =>
  text.replace(/\b(at )?(\d{4}-\d\d-\d\dT[\d:.]+Z)/g, (_, at: string | undefined, time: string) =>
    String(at ? whenText(time, now) : timeText(time, now)),
  );
