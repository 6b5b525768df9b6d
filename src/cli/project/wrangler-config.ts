/** The wrangler configuration of a project: found, read, and extended by what the queue needs. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse as parseToml, TomlError } from 'smol-toml';
import { CliError } from '../failure';
import { addItem, addMember, readJson } from './json-text';
import { EXPORTS_DATE, EXPORTS_FLAG, OBJECT_CLASSES } from './toolchain';

/** How a configuration is written. */
export type ConfigFormat = 'jsonc' | 'toml';

/** A configuration file. */
export interface WranglerConfig {
  /** Its name in the project's folder. */
  file: string;
  format: ConfigFormat;
  text: string;
  values: {
    name?: unknown;
    main?: unknown;
    compatibility_date?: unknown;
    compatibility_flags?: unknown;
    migrations?: unknown;
    dev?: { port?: unknown; ip?: unknown; local_protocol?: unknown };
    env?: unknown;
  };
}

type Values = WranglerConfig['values'];

/** The named environments, by their names. */
export function environmentsOf({ values }: WranglerConfig): [name: string, own: Values & Record<string, unknown>][] {
  const { env } = values;
  const named = typeof env === 'object' && env !== null ? Object.entries(env) : [];
  return named.filter(([, own]) => typeof own === 'object' && own !== null);
}

/** What decides about the classes of a Worker. An environment that has one of these gets nothing of the top level's. */
const DECIDING = ['migrations', 'compatibility_flags', 'compatibility_date'] as const;

/**
 * The parts of a configuration that have to be complete: the top level, and environments that do not inherit all of it.
 */
export function partsOf(config: WranglerConfig): (string | undefined)[] {
  const own = environmentsOf(config).filter(([, values]) => DECIDING.some((name) => values[name] !== undefined));
  return [undefined, ...own.map(([name]) => name)];
}

/** What an environment itself says. */
function ownOf(config: WranglerConfig, env: string | undefined): Values {
  return env === undefined ? config.values : (environmentsOf(config).find(([name]) => name === env)?.[1] ?? {});
}

/** What holds in an environment: its own values, and for the others those of the top level. */
export function valuesIn(config: WranglerConfig, env: string | undefined): Values {
  return { ...config.values, ...ownOf(config, env) };
}

/** The main modules of all parts and environments, each once: mostly there is one. */
export function mainsOf(config: WranglerConfig): unknown[] {
  const parts = [undefined, ...environmentsOf(config).map(([name]) => name)];
  return [...new Set(parts.map((env) => valuesIn(config, env).main))];
}

/** A part as a message names it. */
export function nameOf({ file }: WranglerConfig, env: string | undefined): string {
  return env === undefined ? file : `env.${env} of ${file}`;
}

/** Names in the order in which wrangler looks for them. */
const FILES = ['wrangler.json', 'wrangler.jsonc', 'wrangler.toml'] as const;

/** Finds the configuration in a folder. @throws {CliError} when it cannot be read */
export function findConfig(folder: string): WranglerConfig | undefined {
  const file = FILES.find((name) => existsSync(join(folder, name)));
  return file === undefined ? undefined : readConfig(file, readFileSync(join(folder, file), 'utf8'));
}

/** Reads a configuration. @throws {CliError} naming the file and the line */
export function readConfig(file: string, text: string): WranglerConfig {
  const format = file.endsWith('.toml') ? 'toml' : 'jsonc';
  return { file, format, text, values: format === 'toml' ? readToml(file, text) : readJson(text, file) };
}

function readToml(file: string, text: string): Record<string, unknown> {
  try {
    return parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const what = error.message.split('\n')[0]?.replace(/^Invalid TOML document: /, '');
    throw new CliError(`${file}, line ${error.line}: ${what}.`, 'Correct it, then run this command again.');
  }
}

/** What is missing for the queue. */
export interface ConfigNeeds {
  /** Classes that no migration makes. */
  classes: string[];
  /** Classes that a migration makes without SQLite: that cannot be changed any more. */
  withoutSqlite: string[];
  /** The Worker does not find its own classes: the date is too old. */
  flag: boolean;
}

/** Compares a configuration with what the queue needs. @param env one of {@link partsOf} */
export function needsOf(config: WranglerConfig, env?: string): ConfigNeeds {
  const values = valuesIn(config, env);
  // What an environment inherits is the matter of the top level.
  const says = (...names: (typeof DECIDING)[number][]) =>
    env === undefined || names.some((name) => ownOf(config, env)[name] !== undefined);
  const made = new Set<unknown>();
  const plain = new Set<unknown>();
  for (const migration of migrationsOf(values)) {
    for (const name of listOf(migration.new_sqlite_classes)) made.add(name);
    for (const name of listOf(migration.new_classes)) plain.add(name);
    for (const { from, to } of renamesOf(migration)) if (made.delete(from)) made.add(to);
    for (const name of listOf(migration.deleted_classes)) made.delete(name);
  }
  const date = typeof values.compatibility_date === 'string' ? values.compatibility_date : '';
  const flags = listOf(values.compatibility_flags);
  const classes = says('migrations') ? OBJECT_CLASSES : [];
  return {
    classes: classes.filter((name) => !made.has(name) && !plain.has(name)),
    withoutSqlite: classes.filter((name) => plain.has(name) && !made.has(name)),
    flag: says('compatibility_flags', 'compatibility_date') && date < EXPORTS_DATE && !flags.includes(EXPORTS_FLAG),
  };
}

type Migration = Record<string, unknown>;

function migrationsOf({ migrations }: Values): Migration[] {
  return listOf(migrations).filter((entry): entry is Migration => typeof entry === 'object' && entry !== null);
}

function renamesOf(migration: Migration): { from: unknown; to: unknown }[] {
  return listOf(migration.renamed_classes).flatMap((entry) =>
    typeof entry === 'object' && entry !== null ? [entry as { from: unknown; to: unknown }] : [],
  );
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/**
 * The tag of the next migration: `v3` after `v2`; a tag of its own where the project counts otherwise.
 * @param tags of the migrations so far, in order
 */
export function nextTag(tags: readonly string[]): string {
  // A date is not a count.
  const [, prefix = 'tocsin-v', digits = '0'] = /^(.*?\D|)(\d{1,3})$/.exec(tags.at(-1) ?? 'v0') ?? [];
  const counts = !/\d{4}/.test(prefix);
  for (let count = counts ? Number(digits) + 1 : 1; ; count++) {
    const tag = counts ? prefix + String(count).padStart(digits.length, '0') : `tocsin-v${count}`;
    if (!tags.includes(tag)) return tag;
  }
}

/** The tag of the next migration of a part. */
export function tagFor(config: WranglerConfig, env?: string): string {
  return nextTag(migrationsOf(valuesIn(config, env)).map(({ tag }) => String(tag)));
}

/**
 * The configuration with what the queue needs in one part; everything else stays as it was, comments included.
 * @returns undefined when it is written in a way that cannot be extended without a rewrite
 */
export function withQueue(config: WranglerConfig, needs: ConfigNeeds, env?: string): string | undefined {
  const migration = { tag: tagFor(config, env), new_sqlite_classes: needs.classes };
  try {
    const extend = config.format === 'toml' ? extendToml : extendJson;
    const extended = extend(config, needs, migration, env);
    // Reads what was written: nothing may be missing now, and nothing may have changed beside it.
    const after = readConfig(config.file, extended);
    const { classes, flag } = needsOf(after, env);
    const same = JSON.stringify(besides(after, env)) === JSON.stringify(besides(config, env));
    return classes.length === 0 && !flag && same ? extended : undefined;
  } catch {
    return undefined;
  }
}

/** The values without those that are extended. */
function besides(config: WranglerConfig, env: string | undefined): Values {
  const { migrations: _, compatibility_flags: __, ...rest } = ownOf(config, env);
  if (env === undefined) return rest;
  return { ...config.values, env: { ...(config.values.env as object), [env]: rest } };
}

type NewMigration = { tag: string; new_sqlite_classes: string[] };

function extendJson(config: WranglerConfig, needs: ConfigNeeds, migration: NewMigration, env?: string): string {
  const way = env === undefined ? [] : ['env', env];
  const own = ownOf(config, env);
  const add = (to: string, name: 'migrations' | 'compatibility_flags', value: unknown) => {
    if (Array.isArray(own[name])) return addItem(to, [...way, name], value);
    // What an environment says takes the place of what it would inherit.
    return addMember(to, way, name, [...listOf(valuesIn(config, env)[name]), value]);
  };
  const flagged = needs.flag ? add(config.text, 'compatibility_flags', EXPORTS_FLAG) : config.text;
  return needs.classes.length > 0 ? add(flagged, 'migrations', migration) : flagged;
}

function extendToml(config: WranglerConfig, needs: ConfigNeeds, migration: NewMigration, env?: string): string {
  const { text } = config;
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const [start, end] = env === undefined ? [0, text.length] : tableOf(text, env);
  let part = text.slice(start, end);
  if (needs.flag) {
    const flag = JSON.stringify(EXPORTS_FLAG);
    const inherited = listOf(valuesIn(config, env).compatibility_flags).map((each) => JSON.stringify(each));
    // A list of flags is extended at its beginning; without one, a line follows the date.
    part = Array.isArray(ownOf(config, env).compatibility_flags)
      ? part.replace(/^(\s*compatibility_flags\s*=\s*\[)(\s*)(\]?)/m, (_, open, space, end) =>
          end ? `${open}${flag}]` : `${open}${space}${flag}, `,
        )
      : part.replace(
          /^\s*compatibility_date\s*=.*$/m,
          (line) => `${line}${eol}compatibility_flags = [${[...inherited, flag].join(', ')}]`,
        );
  }
  let extended = text.slice(0, start) + part + text.slice(end);
  if (needs.classes.length > 0) {
    const gap = extended.endsWith('\n') || extended === '' ? eol : eol + eol;
    extended += `${extended.trim() === '' ? '' : gap}${tomlMigration(migration, env).replaceAll('\n', eol)}`;
  }
  return extended;
}

/** Where the table of an environment is in the text: from its header to the next one. */
function tableOf(text: string, env: string): [start: number, end: number] {
  const headers = [...text.matchAll(/^[ \t]*\[.*$/gm)];
  const own = [`[env.${env}]`, `[env."${env}"]`];
  const at = headers.findIndex(([line]) => own.includes(line.replace(/#.*/, '').replaceAll(/\s/g, '')));
  const start = at < 0 ? text.length : (headers[at]?.index ?? 0);
  return [start, headers[at + 1]?.index ?? text.length];
}

function tomlMigration({ tag, new_sqlite_classes }: NewMigration, env?: string): string {
  const classes = new_sqlite_classes.map((name) => JSON.stringify(name)).join(', ');
  const of = env === undefined ? '' : `env.${/^[\w-]+$/.test(env) ? env : JSON.stringify(env)}.`;
  return `[[${of}migrations]]\ntag = ${JSON.stringify(tag)}\nnew_sqlite_classes = [${classes}]\n`;
}

/** The lines that a configuration needs, to be added by hand. @param tag of the migration */
export function snippet(
  format: ConfigFormat,
  tag = 'v1',
  classes: readonly string[] = OBJECT_CLASSES,
  env?: string,
): string {
  const migration = { tag, new_sqlite_classes: [...classes] };
  if (format === 'toml') return tomlMigration(migration, env);
  return `"migrations": [\n  ${JSON.stringify(migration, null, 1).replace(/\s*\n\s*/g, ' ')}\n]\n`;
}
