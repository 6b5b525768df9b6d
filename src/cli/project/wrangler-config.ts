import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse as parseToml, TomlError } from 'smol-toml';
import { CliError } from '../failure';
import { addItem, addMember, readJson } from './json-text';
import { classesMade, type Declaring, declaringBy, listOf, SQLITE_EXPORT } from './object-classes';
import { NEEDED_FLAGS, type NeededFlag, OBJECT_CLASSES } from './toolchain';

export type ConfigFormat = 'jsonc' | 'toml';

export interface WranglerConfig {
  file: string;
  format: ConfigFormat;
  text: string;
  values: Values;
}

type Values = Partial<Record<'name' | 'main' | 'env' | (typeof DECIDING)[number], unknown>> & {
  dev?: Partial<Record<'port' | 'ip' | 'local_protocol', unknown>>;
};

export function environmentsOf({ values }: WranglerConfig): [name: string, own: Values & Record<string, unknown>][] {
  const { env } = values;
  const named = typeof env === 'object' && env !== null ? Object.entries(env) : [];
  return named.filter(([, own]) => typeof own === 'object' && own !== null);
}

/** What decides about the classes of a Worker. An environment that has one of these gets nothing of the top level's. */
const DECIDING = ['migrations', 'exports', 'compatibility_flags', 'compatibility_date'] as const;

export function partsOf(config: WranglerConfig): (string | undefined)[] {
  const own = environmentsOf(config).filter(([, values]) => DECIDING.some((name) => values[name] !== undefined));
  return [undefined, ...own.map(([name]) => name)];
}

const ownOf = (config: WranglerConfig, env: string | undefined): Values =>
  env === undefined ? config.values : (environmentsOf(config).find(([name]) => name === env)?.[1] ?? {});

/** What holds in an environment: its own values, and for the others those of the top level. */
export function valuesIn(config: WranglerConfig, env: string | undefined): Values {
  return { ...config.values, ...ownOf(config, env) };
}

/** The main modules of all parts and environments, each once: mostly there is one. */
export function mainsOf(config: WranglerConfig): unknown[] {
  const parts = [undefined, ...environmentsOf(config).map(([name]) => name)];
  return [...new Set(parts.map((env) => valuesIn(config, env).main))];
}

export const nameOf = ({ file }: WranglerConfig, env: string | undefined): string =>
  env === undefined ? file : `env.${env} of ${file}`;

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

export interface ConfigNeeds {
  /** Classes that no migration makes, and no entry of `exports`. */
  classes: string[];
  /** Classes that are made without SQLite: that cannot be changed any more. */
  withoutSqlite: string[];
  /** Flags that the compatibility date does not bring. */
  flags: readonly NeededFlag[];
}

/** Compares a configuration with what the queue needs. @param env one of {@link partsOf} */
export function needsOf(config: WranglerConfig, env?: string): ConfigNeeds {
  const values = valuesIn(config, env);
  // What an environment inherits is the matter of the top level.
  const decides = (...names: (typeof DECIDING)[number][]) =>
    env === undefined || names.some((name) => ownOf(config, env)[name] !== undefined);
  const all = classesMade(declaringIn(config, env));
  const made = new Map(all.map(({ className, sql }) => [className, sql]));
  const date = typeof values.compatibility_date === 'string' ? values.compatibility_date : '';
  const flags = listOf(values.compatibility_flags);
  const classes = decides('migrations', 'exports') ? OBJECT_CLASSES : [];
  const lacking = NEEDED_FLAGS.filter(({ flag, since }) => date < since && !decidesFlag(flags, flag));
  return {
    classes: classes.filter((name) => !made.has(name)),
    withoutSqlite: classes.filter((name) => made.get(name) === false),
    flags: decides('compatibility_flags', 'compatibility_date') ? lacking : [],
  };
}

/** Is a flag set, or refused by the flag that means its opposite? */
const decidesFlag = (flags: readonly unknown[], flag: string): boolean =>
  [flag, `no_${flag}`, flag.replace(/^enable_/, 'disable_')].some((name) => flags.includes(name));

/** What makes the classes of a part: an environment without them inherits those of the top level. */
export function declaringIn(config: WranglerConfig, env: string | undefined): Declaring {
  const { migrations, exports } = ownOf(config, env);
  return migrations === undefined && exports === undefined ? config.values : { migrations, exports };
}

const usesExports = (config: WranglerConfig, env: string | undefined) =>
  declaringBy(declaringIn(config, env)) === 'exports';

/** The tag of the next migration: `v3` after `v2`, or one of its own. @param tags so far, in order */
export function nextTag(tags: readonly string[]): string {
  // A date is not a count.
  const [, prefix = 'tocsin-v', digits = '0'] = /^(.*?\D|)(\d{1,3})$/.exec(tags.at(-1) ?? 'v0') ?? [];
  const counts = !/\d{4}/.test(prefix);
  for (let count = counts ? Number(digits) + 1 : 1; ; count++) {
    const tag = counts ? prefix + String(count).padStart(digits.length, '0') : `tocsin-v${count}`;
    if (!tags.includes(tag)) return tag;
  }
}

export function tagFor(config: WranglerConfig, env?: string): string {
  const migrations = listOf(valuesIn(config, env).migrations) as ({ tag?: unknown } | null)[];
  return nextTag(migrations.map((migration) => String(migration?.tag)));
}

/** The configuration with what the queue needs in one part, all else unchanged; undefined: it would need a rewrite. */
export function withQueue(config: WranglerConfig, needs: ConfigNeeds, env?: string): string | undefined {
  const migration = { tag: tagFor(config, env), new_sqlite_classes: needs.classes };
  try {
    const extend = config.format === 'toml' ? extendToml : extendJson;
    const extended = extend(config, needs, migration, env);
    // Reads what was written: nothing may be missing now, and nothing may have changed beside it.
    const after = readConfig(config.file, extended);
    const { classes, flags } = needsOf(after, env);
    const same = JSON.stringify(besides(after, env)) === JSON.stringify(besides(config, env));
    return classes.length === 0 && flags.length === 0 && same ? extended : undefined;
  } catch {
    return undefined;
  }
}

/** The values without those that are extended. */
function besides(config: WranglerConfig, env: string | undefined): Values {
  const { migrations: _, exports: __, compatibility_flags: ___, ...rest } = ownOf(config, env);
  if (env === undefined) return rest;
  return { ...config.values, env: { ...(config.values.env as object), [env]: rest } };
}

type NewMigration = { tag: string; new_sqlite_classes: string[] };

function extendJson(config: WranglerConfig, needs: ConfigNeeds, migration: NewMigration, env?: string): string {
  const way = env === undefined ? [] : ['env', env];
  const own = ownOf(config, env);
  const add = (to: string, name: 'migrations' | 'compatibility_flags', values: readonly unknown[]) => {
    if (Array.isArray(own[name]))
      return values.reduce<string>((text, value) => addItem(text, [...way, name], value), to);
    // A list of an environment replaces the inherited one.
    return addMember(to, way, name, [...listOf(valuesIn(config, env)[name]), ...values]);
  };
  const flags = needs.flags.map(({ flag }) => flag);
  const flagged = flags.length > 0 ? add(config.text, 'compatibility_flags', flags) : config.text;
  if (needs.classes.length === 0) return flagged;
  if (!usesExports(config, env)) return add(flagged, 'migrations', [migration]);
  return needs.classes.reduce((text, name) => addMember(text, [...way, 'exports'], name, SQLITE_EXPORT), flagged);
}

function extendToml(config: WranglerConfig, needs: ConfigNeeds, migration: NewMigration, env?: string): string {
  const { text } = config;
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const [start, end] = env === undefined ? [0, text.length] : tableOf(text, env);
  let part = text.slice(start, end);
  if (needs.flags.length > 0) {
    const flag = needs.flags.map((each) => JSON.stringify(each.flag)).join(', ');
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
    extended += `${extended.trim() === '' ? '' : gap}${tomlClasses(migration, env, usesExports(config, env)).replaceAll('\n', eol)}`;
  }
  return extended;
}

function tableOf(text: string, env: string): [start: number, end: number] {
  const headers = [...text.matchAll(/^[ \t]*\[.*$/gm)];
  const own = [`[env.${env}]`, `[env."${env}"]`];
  const at = headers.findIndex(([line]) => own.includes(line.replace(/#.*/, '').replaceAll(/\s/g, '')));
  // Its arrays of tables need no table of its own.
  if (at < 0) return [text.length, text.length];
  return [headers[at]?.index ?? 0, headers[at + 1]?.index ?? text.length];
}

function tomlClasses({ tag, new_sqlite_classes }: NewMigration, env?: string, byExports = false): string {
  const of = env === undefined ? '' : `env.${/^[\w-]+$/.test(env) ? env : JSON.stringify(env)}.`;
  if (byExports) {
    const members = Object.entries(SQLITE_EXPORT).map(([name, value]) => `${name} = ${JSON.stringify(value)}\n`);
    return new_sqlite_classes.map((name) => `[${of}exports.${name}]\n${members.join('')}`).join('\n');
  }
  const classes = new_sqlite_classes.map((name) => JSON.stringify(name)).join(', ');
  return `[[${of}migrations]]\ntag = ${JSON.stringify(tag)}\nnew_sqlite_classes = [${classes}]\n`;
}

/** The lines that a configuration needs, to be added by hand. @param tag of the migration */
export function snippet(
  format: ConfigFormat,
  tag = 'v1',
  classes: readonly string[] = OBJECT_CLASSES,
  env?: string,
  byExports = false,
): string {
  const migration = { tag, new_sqlite_classes: [...classes] };
  if (format === 'toml') return tomlClasses(migration, env, byExports);
  const line = (value: object) => JSON.stringify(value, null, 1).replace(/\s*\n\s*/g, ' ');
  if (!byExports) return `"migrations": [\n  ${line(migration)}\n]\n`;
  return `"exports": {\n${classes.map((name) => `  ${JSON.stringify(name)}: ${line(SQLITE_EXPORT)}`).join(',\n')}\n}\n`;
}

export const snippetFor = (config: WranglerConfig, classes: readonly string[], env?: string): string =>
  snippet(config.format, tagFor(config, env), classes, env, usesExports(config, env));
