/** What every command shares: its options, its connection, one way to print and to fail. */
import { Command, InvalidArgumentError } from 'commander';
import type { TocsinClient } from '../client/client';
import { wired } from '../producer/names';
import { type ConnectionOptions, connect, type Endpoint, endpointOf, type Write, writer } from './connection';
import { jsonText, printable, type Terminal } from './output';

export interface Session<Options> {
  tocsin: TocsinClient;
  endpoint: Endpoint;
  options: Options & ConnectionOptions;
  terminal: Terminal;
  write: Write;
  /**
   * Prints `value` as one line of JSON under `--json`, else the text. Scripts rely on members: add, never change them.
   */
  answer(value: object, text: () => string): void;
}

export function remote(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .option('--url <url>', 'address of the queue (TOCSIN_URL; default http://localhost:8787)')
    .option('--key <key>', 'API key (TOCSIN_KEY)')
    .option('--json', 'print JSON');
}

/** Opens the connection that the options of a command name. */
export function session<Options extends object>(terminal: Terminal, options: Options & ConnectionOptions) {
  const opened: Session<Options> = {
    tocsin: connect(options, terminal),
    endpoint: endpointOf(options, terminal.env),
    options,
    terminal,
    write: writer(options, terminal),
    answer: (value, text) => print(terminal, options.json, value, text),
  };
  return opened;
}

/** Prints JSON, with the names of the wire, or text. Neither steers the terminal, whatever producers have written. */
export function print(terminal: Terminal, json: boolean | undefined, value: object, text: () => string): void {
  const shown = json ? jsonText({ ...(wired(value) as object), ...warningsOf(terminal) }) : printable(text());
  if (shown !== '') terminal.out(`${shown}\n`);
}

/** What the server has warned of since the last line of JSON, as a member of the next one. */
export function warningsOf({ warnings }: Terminal): { warnings?: string[] } {
  return warnings.length > 0 ? { warnings: warnings.splice(0) } : {};
}

export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max && text.trim() !== '') return value;
    throw new InvalidArgumentError(`It must be a whole number of ${min} to ${max}.`);
  };
}

export function list(text: string, before: string[] = []): string[] {
  return [...before, ...text.split(',').filter((item) => item !== '')];
}

export function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError('It must be JSON.');
  }
}
