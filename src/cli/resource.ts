/** What a person sees of things: a table, or one with all that is known of it. Texts name members as on the wire. */
import { readFileSync } from 'node:fs';
import { defined, isObject } from '../job/envelope/fields';
import { wired, wireName } from '../producer/names';
import { type Action, action, type Opened, type Result, type Session } from './command';
import { reasonOf, usageError } from './failure';
import { facts, table, timeText } from './output';
import type { Column } from './views';

/** A list. @param member under which JSON has it @param none what is reported of an empty one */
export async function listed<Item>(
  { terminal }: Pick<Session, 'terminal'>,
  member: string,
  items: AsyncIterable<Item> | Promise<readonly Item[]>,
  columns: readonly Column<Item>[],
  none: string,
): Promise<Result> {
  const found: Item[] = [];
  for await (const item of 'then' in items ? await items : items) found.push(item);
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
  const heads = columns.map(([head]) => head);
  const rows = found.map((item) => columns.map(([, cell]) => cell(item, now)));
  return table(heads, rows);
}

/** One thing with all that is known of it. @param beside renders a member below the facts; '' for nothing new */
export function shown(
  { terminal }: Pick<Session, 'terminal'>,
  member: string,
  item: object,
  beside: Readonly<Record<string, string>> = {},
): Result {
  const now = terminal.now();
  const known = Object.entries(item).filter(([name]) => !Object.hasOwn(beside, name));
  const plain = facts(known.map(([name, value]) => [wireName(name).replaceAll('_', ' '), factOf(name, value, now)]));
  const text = [plain, ...Object.values(beside)].filter(Boolean).join('\n\n');
  return { value: { [member]: item }, text };
}

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function factOf(name: string, value: unknown, now: number): unknown {
  if (value === null || (Array.isArray(value) && value.length === 0)) return undefined;
  // Arguments may be anything; any other list of texts is one of names.
  const isNames = name !== 'args' && Array.isArray(value) && value.every((one) => typeof one === 'string');
  if (isNames) return value.join(', ');
  if (typeof value === 'string' && TIME.test(value)) return timeText(value, now);
  return typeof value === 'object' ? wired(value) : value;
}

/** How long a command waits until many jobs are changed. */
export const BULK_WAIT = { timeoutMs: 600_000 } as const;

export const jobLine = ({ id, type, queue, state }: Record<'id' | 'type' | 'queue' | 'state', string>): string =>
  `${id}  ${type}  ${queue}  ${state}`;

/** The verb that takes one away permanently. @param what is lost: `the rule` */
export function removal(
  what: string,
  remove: (opened: Opened<object>, ...given: string[]) => Promise<void>,
  change: Partial<Action> = {},
): Action {
  const asks = (...given: string[]) => `Delete ${what} ${given.join(' ')}?`;
  const removed = action('remove', `delete ${what}`, { asks }, async (opened, ...given) => {
    await remove(opened, ...given);
    const name = given.join(' ');
    return { value: { removed: name }, text: `${name}  removed` };
  });
  return { ...removed, ...change };
}

export const FILE = {
  file: ['--file <path>', 'JSON body, as over HTTP; - reads standard input; options override it'],
} as const;

/** The body of a request: the JSON of `--file`, and over it the members that were given. */
export function bodyOf({ file, ...members }: { file?: string; [member: string]: unknown }): Record<string, unknown> {
  return { ...(file !== undefined && readObject(file)), ...defined(members) };
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
  if (isObject(value)) return value;
  throw usageError(`${file} must hold a JSON object.`);
}
