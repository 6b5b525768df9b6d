import { stripVTControlCharacters } from 'node:util';
import { parseObject } from '../../job/envelope/fields';
import { own } from '../../job/own';
import { jsonText, onOneLine } from '../output';
import { byLine } from './local-socket';

export type Level = 'debug' | 'info' | 'warn' | 'error';

/** Where a line comes from: the program, the runtime, or the code of a Worker. */
export type LogSource = 'serve' | 'workerd' | 'worker';

const LEVELS: Readonly<Record<string, Level>> = {
  debug: 'debug',
  log: 'info',
  info: 'info',
  warn: 'warn',
  warning: 'warn',
  error: 'error',
  fatal: 'error',
};

const COLOURS: Readonly<Record<Level, string>> = {
  debug: '\u001b[2m',
  info: '',
  warn: '\u001b[33m',
  error: '\u001b[31m',
};

export class Log {
  /** @param pretty for a terminal, not for programs @param colours whether the terminal supports them */
  constructor(
    private readonly write: (text: string) => void,
    private readonly now: () => number,
    private readonly pretty: boolean,
    private readonly colours: boolean,
  ) {}

  line(level: Level, source: LogSource, message: string, more: object = {}, at = this.now()): void {
    const time = new Date(at).toISOString();
    if (!this.pretty) this.write(`${jsonText({ time, level, source, message, ...more })}\n`);
    else {
      const [on, off] = this.colours && COLOURS[level] ? [COLOURS[level], '\u001b[0m'] : ['', ''];
      this.write(`${time.slice(11, 23)} ${on}${level.padEnd(5)} ${source.padEnd(7)} ${onOneLine(message)}${off}\n`);
    }
  }

  readonly info = this.ofProgram('info');
  readonly warn = this.ofProgram('warn');
  readonly error = this.ofProgram('error');

  private ofProgram(level: Level) {
    return (message: string, more?: object): void => this.line(level, 'serve', message, more);
  }

  /** Reads what the runtime prints, in pieces of any size. @param received gets each message of the runtime itself */
  reader(received: (message: string, level: Level) => void = () => undefined): (piece: string) => void {
    return byLine((printed) => {
      const line = stripVTControlCharacters(printed);
      if (line.trim() !== '') this.passOn(line, received);
    });
  }

  /** A line of the runtime: JSON or text. The runtime names a file as the source; a Worker has none. */
  private passOn(line: string, received: (message: string, level: Level) => void): void {
    const entry = parseObject(line);
    if (!entry || !('message' in entry)) {
      received(line, 'info');
      this.line('info', 'workerd', line);
      return;
    }
    const level = own(LEVELS, String(entry.level).toLowerCase()) ?? 'info';
    const message = String(entry.message ?? '');
    const at = Number(entry.timestamp);
    const isWorker = entry.source === undefined;
    if (!isWorker) received(message, level);
    this.line(level, isWorker ? 'worker' : 'workerd', message, {}, Number.isFinite(at) && at > 0 ? at : this.now());
  }
}
