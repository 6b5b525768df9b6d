/** What every command shares: its options, its connection, one way to print and to fail. */
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { wired } from '../producer/names';
import { type ConnectionOptions, connect, endpointOf, requestsTo, warner } from './connection';
import { CliError, usageError } from './failure';
import { jsonText, printable, type Terminal } from './output';

export type Session = ReturnType<typeof session>;

export const remote = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .option('--url <url>', 'address of the queue (TOCSIN_URL; default http://localhost:8787)')
    .option('--key <key>', 'API key (TOCSIN_KEY)')
    .option('--json', 'print JSON');

export function session(terminal: Terminal, options: ConnectionOptions) {
  const endpoint = endpointOf(options, terminal.env);
  const { once } = requestsTo(endpoint, { onWarning: warner(options, terminal) });
  return {
    ...{ tocsin: connect(options, terminal), endpoint, terminal },
    /** Sends a request as it is, and answers what the server does. It is not repeated after a lost answer. */
    write: async (method: string, path: string, body?: object) =>
      ((await once(method, path, body && JSON.stringify(body))) ?? {}) as Record<string, unknown>,
    /** Prints `value` as a line of JSON under `--json`, else the text. Scripts rely on members: only add them. */
    answer: (value: object, text: () => string) => print(terminal, options.json, value, text),
  };
}

/** Prints JSON, with the names of the wire, or text. Neither steers the terminal, whatever producers have written. */
export function print(terminal: Terminal, json: boolean | undefined, value: object, text: () => string): void {
  const shown = json ? jsonText({ ...(wired(value) as object), ...warningsOf(terminal) }) : printable(text());
  if (shown !== '') terminal.out(`${shown}\n`);
}

/** What the server has warned of since the last line of JSON, as a member of the next one. */
export const warningsOf = ({ warnings }: Terminal): { warnings?: string[] } =>
  warnings.length > 0 ? { warnings: warnings.splice(0) } : {};

type Read = (text: string, before?: never) => unknown;

/** How it is written, what it means, how it is read (a function or a choice of words; absent: as text), its default. */
export type Flag = readonly [
  written: string,
  description: string,
  read?: Read | readonly string[] | undefined,
  initial?: unknown,
];

export type Flags = Readonly<Record<string, Flag>>;

type Value<F> = F extends readonly [string, string, (text: string, before?: never) => infer T, ...unknown[]]
  ? Exclude<T, undefined>
  : F extends readonly [`${string}<${string}`, ...unknown[]]
    ? string
    : true;
type WithDefault<F> = F extends readonly [string, string, unknown, unknown] ? true : false;

/** The members that flags set: those without a default may be absent. */
export type Members<F extends Flags> = {
  [Name in keyof F as WithDefault<F[Name]> extends true ? never : Name]?: Value<F[Name]>;
} & { [Name in keyof F as WithDefault<F[Name]> extends true ? Name : never]: Value<F[Name]> };

export type Arguments = readonly Flag[];

/** What is given for arguments: `[name]` may be absent, `<name...>` is a list. */
export type Given<A extends Arguments> = {
  -readonly [At in keyof A]: A[At] extends Flag
    ? A[At][2] extends Read
      ? Value<A[At]> | (WithDefault<A[At]> extends true ? never : undefined)
      : A[At][0] extends `${string}...${string}`
        ? string[]
        : A[At] extends readonly [`[${string}`, string]
          ? string | undefined
          : A[At] extends readonly [string, string, readonly (infer Word)[]]
            ? Word
            : string
    : never;
};

export interface Result {
  value: object;
  text: string;
  /** It was done, but something is still wrong. */
  failure?: CliError | undefined;
}

export interface Opened<M> extends Session {
  members: M;
}

interface Accepts<A extends Arguments, F extends Flags, N extends Flags> {
  takes?: A;
  flags?: F;
  needs?: N;
  /** What is lost by it: a human at a terminal is asked first. */
  asks?(...given: string[]): string;
  note?: string;
}

type Run<A extends Arguments, F extends Flags, N extends Flags> = (
  opened: Opened<Members<F> & Required<Members<N>>>,
  ...given: Given<A>
) => Promise<Result | undefined>;

export interface Action extends Accepts<Arguments, Flags, Flags> {
  name: string;
  summary: string;
  /** @returns undefined where it has printed by itself */
  run(opened: Opened<object>, ...given: unknown[]): Promise<Result | undefined>;
  verbs?: readonly Action[];
}

type None = Readonly<Record<never, Flag>>;

/** A command. What it takes and what its flags mean give `run` its types. */
export function action<
  const A extends Arguments = readonly (readonly [string, string])[],
  const F extends Flags = None,
  const N extends Flags = None,
>(name: string, summary: string, accepts: Accepts<A, F, N>, run: Run<A, F, N>): Action {
  return { name, summary, ...accepts, run: run as Action['run'] };
}

/** A list command with verbs, which take `one` of its kind unless they take something else. */
export function resource(list: Action, one: Arguments, verbs: readonly Action[]): Action {
  return { ...list, verbs: verbs.map((verb) => ({ takes: one, ...verb })) };
}

/** The command with its verbs, as commander runs it. */
export function commandOf(terminal: Terminal, it: Action): Command {
  const { name, summary, takes = [], needs = {}, flags = {}, asks, note, run, verbs = [] } = it;
  const command = remote(name, summary);
  for (const taken of takes) command.addArgument(readAs(new Argument(taken[0], taken[1]), taken));
  for (const flag of Object.values(needs)) command.addOption(optionOf(flag).makeOptionMandatory());
  for (const flag of Object.values(flags)) command.addOption(optionOf(flag));
  if (asks) command.option('-y, --yes', 'do not ask first');
  if (note !== undefined) command.addHelpText('after', `\n${note}`);
  command.action(async (...all: unknown[]) => {
    // After the arguments come the options and the command. Its options may stand before a verb.
    const given = all.slice(0, takes.length);
    const options = (all.at(-1) as Command).optsWithGlobals<ConnectionOptions & { yes?: boolean }>();
    const opened = session(terminal, options);
    const isAsked = asks !== undefined && terminal.interactive && !options.yes && !options.json;
    if (isAsked && !(await terminal.confirm(asks(...(given as string[]))))) {
      throw new CliError('Nothing was changed.', undefined, 'declined');
    }
    const result = await run({ ...opened, members: membersIn({ ...needs, ...flags }, options) }, ...given);
    if (result) opened.answer(result.value, () => result.text);
    if (result?.failure) throw result.failure;
  });
  for (const verb of verbs) command.addCommand(commandOf(terminal, verb));
  return command;
}

export const optionOf = (flag: Flag): Option => readAs(new Option(flag[0], flag[1]), flag);

function readAs<T extends Option | Argument>(one: T, [, , read, initial]: Flag): T {
  if (typeof read === 'function') one.argParser(read as (text: string) => unknown);
  else if (read) one.choices(read);
  if (initial !== undefined) one.default(initial);
  return one;
}

/** The values of flags among the options of a command, by member. */
export function membersIn(flags: Flags, options: object): Record<string, unknown> {
  const given = Object.entries(flags).flatMap(([name, flag]) => {
    const value: unknown = Reflect.get(options, optionOf(flag).attributeName());
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(given);
}

export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max && text.trim() !== '') return value;
    throw new InvalidArgumentError(`It must be a whole number of ${min} to ${max}.`);
  };
}

/** The flag `--limit` of a list. @param what it lists, such as `jobs` */
export const limitOf = (what: string, most = 10_000) =>
  ['--limit <n>', `maximum number of ${what}`, integer(1, most), 20] as const;

export function list(text: string, before: string[] = []): string[] {
  return [...before, ...text.split(',').filter((item) => item !== '')];
}

/** A list of known words. @param what one of them is, such as `a state`; `plural` names all of them */
function listOf<const T extends string>(known: readonly T[], what: string, plural: string) {
  return (text: string, before: T[] = []): T[] => [
    ...before,
    ...list(text).map((word) => oneOf(known, what, plural)(word)),
  ];
}

/** The flag `--state` of a list. @param what it lists, such as `jobs` @param one such as `a state of a workflow` */
export const stateOf = <const T extends string>(states: readonly T[], what: string, one: string) =>
  ['--state <state>', `only ${what} in this state: ${states.join(', ')}`, listOf(states, one, 'States')] as const;

/** One of known words. @throws {CliError} */
export function oneOf<const T extends string>(known: readonly T[], what: string, plural: string) {
  return (text: string): T => {
    const found = known.find((word) => word === text);
    if (found !== undefined) return found;
    throw usageError(`${text} is not ${what}.`, `${plural} are ${known.join(', ')}.`);
  };
}

/** A condition of a list: an empty one is none. */
export const condition = (text: string): string | undefined => text || undefined;

export function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError('It must be JSON.');
  }
}
