/** Commands about one kind of thing, from a table: list, show, verbs. Texts name members as on the wire. */
import { readFileSync } from 'node:fs';
import { Argument, type Command } from 'commander';
import { wired, wireName } from '../producer/names';
import { remote, type Session, session } from './command';
import type { ConnectionOptions } from './connection';
import { CliError, reasonOf, usageError } from './failure';
import { facts, type Terminal, table, timeText } from './output';
import type { Column } from './views';

export interface Said {
  value: object;
  text: string;
  /** It was done, but something is still wrong. */
  failure?: CliError;
}

/** What a verb takes, as commander reads it: `<id>` or `[version]`, and what that is. */
export type TakenArguments = readonly (readonly [name: string, description: string])[];

type Opened = Session<Record<string, unknown>>;

interface Verb {
  name: string;
  summary: string;
  /** Default: one of the kind. */
  takes?: TakenArguments;
  options?(command: Command): Command;
  /** What is lost by it: a human at a terminal is asked first. */
  asks?(...given: string[]): string;
  run(opened: Opened, ...given: string[]): Promise<Said>;
}

/** A verb whose options have types. */
export function verb<Options extends object>(
  told: Omit<Verb, 'run'> & {
    run(opened: Session<Options>, ...given: (string | undefined)[]): Promise<Said>;
  },
): Verb {
  return told as unknown as Verb;
}

export interface Resource<Options> {
  name: string;
  summary: string;
  options?(command: Command): Command;
  takes?: TakenArguments;
  list(opened: Session<Options>, ...given: string[]): Promise<Said>;
  /** One of the kind, as an argument. */
  one: TakenArguments;
  verbs: readonly Verb[];
}

/** The command of a kind of thing: alone it lists, with a verb it acts. */
export function resourceCommand<Options extends object>(terminal: Terminal, resource: Resource<Options>): Command {
  const { name, summary, takes = [], options = (command: Command) => command, list, one, verbs } = resource;
  const command = options(remote(name, summary));
  for (const [argument, description] of takes) command.addArgument(new Argument(argument, description));
  command.action(async (...given: unknown[]) => {
    const opened = session<Options>(terminal, given[takes.length] as Options & ConnectionOptions);
    say(opened, await list(opened, ...(given.slice(0, takes.length) as string[])));
  });
  for (const told of verbs) command.addCommand(verbCommand(terminal, told, one));
  return command;
}

function verbCommand(terminal: Terminal, told: Verb, one: TakenArguments): Command {
  const { name, summary, takes = one, options = (command: Command) => command, asks, run } = told;
  const command = options(remote(name, summary));
  for (const [argument, description] of takes) command.addArgument(new Argument(argument, description));
  if (asks) command.option('-y, --yes', 'do not ask first');
  return command.action(async (...given: unknown[]) => {
    // After the arguments come the options and the command.
    const words = given.slice(0, takes.length) as string[];
    const all = (given.at(-1) as Command).optsWithGlobals<ConnectionOptions & { yes?: boolean }>();
    const opened: Opened = session(terminal, all);
    const isAsked = asks !== undefined && terminal.interactive && !all.yes && !all.json;
    if (isAsked && !(await terminal.confirm(asks(...words)))) {
      throw new CliError('Nothing was changed.', undefined, 'declined');
    }
    say(opened, await run(opened, ...words));
  });
}

function say({ answer }: Pick<Opened, 'answer'>, { value, text, failure }: Said): void {
  answer(value, () => text);
  if (failure) throw failure;
}

/** A list. @param member under which JSON has it @param none what is said of an empty one */
export async function listed<Item>(
  { terminal }: Pick<Session<object>, 'terminal'>,
  member: string,
  items: AsyncIterable<Item>,
  columns: readonly Column<Item>[],
  none: string,
): Promise<Said> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return { value: { [member]: found }, text: tableOf(found, columns, none, terminal.now()) };
}

/** {@link listed} for items at hand. */
export function tableOf<Item>(
  found: readonly Item[],
  columns: readonly Column<Item>[],
  none: string,
  now: number,
): string {
  if (found.length === 0) return none;
  return table(
    columns.map(([head]) => head),
    found.map((item) => columns.map(([, cell]) => cell(item, now))),
  );
}

/** One thing with all that is known of it. @param beside renders a member below the facts; '' for nothing new */
export function shown(
  { terminal }: Pick<Session<object>, 'terminal'>,
  member: string,
  item: object,
  beside: Readonly<Record<string, string>> = {},
): Said {
  const now = terminal.now();
  const known = Object.entries(item).filter(([name]) => !Object.hasOwn(beside, name));
  const told = facts(known.map(([name, value]) => [wireName(name).replaceAll('_', ' '), factOf(name, value, now)]));
  const text = [told, ...Object.values(beside)].filter(Boolean).join('\n\n');
  return { value: { [member]: item }, text };
}

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function factOf(name: string, value: unknown, now: number): unknown {
  if (value === null || (Array.isArray(value) && value.length === 0)) return undefined;
  // Arguments are what their job says; any other list is one of names.
  const isNames = name !== 'args' && Array.isArray(value) && value.every((one) => typeof one === 'string');
  if (isNames) return value.join(', ');
  if (typeof value === 'string' && TIME.test(value)) return timeText(value, now);
  return typeof value === 'object' ? wired(value) : value;
}

/** The verb that takes one away permanently. @param what is lost: `the rule` */
export function removal(
  what: string,
  remove: (opened: Opened, ...given: string[]) => Promise<void>,
  change: Partial<Verb> = {},
): Verb {
  return {
    name: 'remove',
    summary: `delete ${what}`,
    asks: (...given) => `Delete ${what} ${named(given)}?`,
    async run(opened, ...given) {
      await remove(opened, ...given);
      return { value: { removed: named(given) }, text: `${named(given)}  removed` };
    },
    ...change,
  };
}

const named = (given: readonly (string | undefined)[]) => given.filter((word) => word !== undefined).join(' ');

/** Says what to send as JSON, for what the options do not say. */
export function fromFile(command: Command): Command {
  return command.option('--file <path>', 'JSON body, as over HTTP; - reads standard input; options override it');
}

/** The body of a request: the JSON of `--file`, and over it what options say. */
export function bodyOf(file: string | undefined, members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const said = Object.entries(members).filter(([, value]) => value !== undefined);
  return { ...(file === undefined ? {} : readObject(file)), ...Object.fromEntries(said) };
}

/** @throws {CliError} for a file that is not there, or holds no object */
export function readObject(file: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'));
  } catch (error) {
    const why = error instanceof SyntaxError ? 'is not JSON' : 'cannot be read';
    throw usageError(`${file} ${why}: ${reasonOf(error)}.`);
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw usageError(`${file} must hold a JSON object.`);
}
