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
  };
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
    throw new CliError(`${file}, line ${error.line}: ${what}.`, 'Correct it, then run this again.');
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

/** Compares a configuration with what the queue needs. */
export function needsOf({ values }: WranglerConfig): ConfigNeeds {
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
  return {
    classes: OBJECT_CLASSES.filter((name) => !made.has(name) && !plain.has(name)),
    withoutSqlite: OBJECT_CLASSES.filter((name) => plain.has(name) && !made.has(name)),
    flag: date < EXPORTS_DATE && !flags.includes(EXPORTS_FLAG),
  };
}

type Migration = Record<string, unknown>;

function migrationsOf({ migrations }: WranglerConfig['values']): Migration[] {
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
  // A date is no count.
  const [, prefix = 'tocsin-v', digits = '0'] = /^(.*?\D|)(\d{1,3})$/.exec(tags.at(-1) ?? 'v0') ?? [];
  const counts = !/\d{4}/.test(prefix);
  for (let count = counts ? Number(digits) + 1 : 1; ; count++) {
    const tag = counts ? prefix + String(count).padStart(digits.length, '0') : `tocsin-v${count}`;
    if (!tags.includes(tag)) return tag;
  }
}

/**
 * The configuration with what the queue needs; everything else stays as it was, comments included.
 * @returns undefined when it is written in a way that cannot be extended without a rewrite
 */
export function withQueue(config: WranglerConfig, needs: ConfigNeeds): string | undefined {
  const tags = migrationsOf(config.values).map(({ tag }) => String(tag));
  const migration = { tag: nextTag(tags), new_sqlite_classes: needs.classes };
  const extended =
    config.format === 'toml' ? extendToml(config, needs, migration) : extendJson(config, needs, migration);
  try {
    // Reads what was written: nothing may be missing now, and nothing may have changed beside it.
    const after = readConfig(config.file, extended);
    const { classes, flag } = needsOf(after);
    const { migrations: _, compatibility_flags: __, ...rest } = after.values;
    const { migrations: ___, compatibility_flags: ____, ...before } = config.values;
    const same = JSON.stringify(rest) === JSON.stringify(before);
    return classes.length === 0 && !flag && same ? extended : undefined;
  } catch {
    return undefined;
  }
}

type NewMigration = { tag: string; new_sqlite_classes: string[] };

function extendJson({ text, values }: WranglerConfig, needs: ConfigNeeds, migration: NewMigration): string {
  const add = (to: string, name: 'migrations' | 'compatibility_flags', value: unknown) =>
    Array.isArray(values[name]) ? addItem(to, [name], value) : addMember(to, [], name, [value]);
  const flagged = needs.flag ? add(text, 'compatibility_flags', EXPORTS_FLAG) : text;
  return needs.classes.length > 0 ? add(flagged, 'migrations', migration) : flagged;
}

function extendToml({ text, values }: WranglerConfig, needs: ConfigNeeds, migration: NewMigration): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  let extended = text;
  if (needs.flag) {
    const flag = JSON.stringify(EXPORTS_FLAG);
    // A list of flags is extended at its beginning; without one, a line follows the date.
    extended = Array.isArray(values.compatibility_flags)
      ? extended.replace(/^(\s*compatibility_flags\s*=\s*\[)(\s*)(\]?)/m, (_, open, space, end) =>
          end ? `${open}${flag}]` : `${open}${space}${flag}, `,
        )
      : extended.replace(/^\s*compatibility_date\s*=.*$/m, (line) => `${line}${eol}compatibility_flags = [${flag}]`);
  }
  if (needs.classes.length > 0) {
    const gap = extended.endsWith('\n') || extended === '' ? eol : eol + eol;
    extended += `${extended.trim() === '' ? '' : gap}${tomlMigration(migration).replaceAll('\n', eol)}`;
  }
  return extended;
}

function tomlMigration({ tag, new_sqlite_classes }: NewMigration): string {
  const classes = new_sqlite_classes.map((name) => JSON.stringify(name)).join(', ');
  return `[[migrations]]\ntag = ${JSON.stringify(tag)}\nnew_sqlite_classes = [${classes}]\n`;
}

/** The lines that a configuration needs, to be added by hand. @param tag of the migration */
export function snippet(format: ConfigFormat, tag = 'v1', classes: readonly string[] = OBJECT_CLASSES): string {
  const migration = { tag, new_sqlite_classes: [...classes] };
  if (format === 'toml') return tomlMigration(migration);
  return `"migrations": [\n  ${JSON.stringify(migration, null, 1).replace(/\s*\n\s*/g, ' ')}\n]\n`;
}
