/** A Worker as plain workerd can run it. Bindings that only Cloudflare has are refused at the start. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { own, textOf } from '../../job/own';
import { CliError } from '../failure';
import { classesMade, type MadeClass } from '../project/object-classes';
import { packageName } from '../project/package-json';
import { OBJECT_CLASSES } from '../project/toolchain';
import { declaringIn, findConfig, needsOf, readConfig, type WranglerConfig } from '../project/wrangler-config';

export interface ServedWorker {
  name: string;
  main?: string;
  folder: string;
  date: string;
  flags: readonly string[];
  vars: Readonly<Record<string, unknown>>;
  services: readonly { binding: string; service: string; entrypoint?: string }[];
  /** `service`: the Worker that has the class; absent: this one. */
  objects: readonly { binding: string; className: string; service?: string }[];
  /** The databases of a class are in a folder with the name of its key. */
  classes: readonly MadeClass[];
  define: Readonly<Record<string, string>>;
  alias: Readonly<Record<string, string>>;
  /** What its configuration asks for and is not done here. */
  warnings: readonly string[];
}

/** Of the queue alone, and of handlers without a configuration. */
export const DATE = '2026-11-01';

export const QUEUE_ALONE: ServedWorker = {
  ...{ name: 'tocsin', folder: '.', date: DATE, flags: ['global_fetch_strictly_public', 'no_web_socket_compression'] },
  ...{ vars: {}, services: [], objects: [], define: {}, alias: {}, warnings: [] },
  classes: OBJECT_CLASSES.map((className) => ({ className, key: className, sql: true })),
};

/** Bindings to what plain workerd does not have. */
const REFUSED = [
  'kv_namespaces',
  'r2_buckets',
  'd1_databases',
  'queues',
  'hyperdrive',
  'vectorize',
  'ai',
  'browser',
  'images',
  'workflows',
  'dispatch_namespaces',
  'mtls_certificates',
  'send_email',
  'pipelines',
  'secrets_store_secrets',
  'containers',
  'assets',
  'site',
];

/** What a named environment does not inherit. */
const OWN_ONLY = ['vars', 'services', 'durable_objects', 'define', ...REFUSED];

export function configIn(folder: string, file?: string): { config: WranglerConfig; folder: string } | undefined {
  if (file === undefined) {
    const config = findConfig(folder);
    return config && { config, folder };
  }
  const path = resolve(folder, file);
  if (!existsSync(path)) throw new CliError(`There is no ${path}.`, 'Name a wrangler configuration with --config.');
  return { config: readConfig(basename(path), readFileSync(path, 'utf8')), folder: dirname(path) };
}

export function holdsQueue(config: WranglerConfig): boolean {
  const { classes, withoutSqlite } = needsOf(config);
  return classes.length === 0 && withoutSqlite.length === 0;
}

/** @param env one of its environments @throws {CliError} naming what cannot be served */
export function workerOf(config: WranglerConfig, folder: string, env?: string): ServedWorker {
  const { file } = config;
  const values = valuesOf(config, env);
  const refused = REFUSED.filter((name) => hasAny(own(values, name)));
  if (refused.length > 0) {
    const message = `${join(folder, file)} asks for ${refused.join(', ')}, which plain workerd does not have.`;
    throw new CliError(message, 'Leave them out in an environment of their own, and name it with --env.');
  }
  const main = textOf(values.main);
  if (main === undefined) throw new CliError(`${join(folder, file)} names no main module.`);
  build(values.build);
  const list = (value: unknown) => (Array.isArray(value) ? (value as Record<string, unknown>[]) : []);
  const { bindings } = (values.durable_objects ?? {}) as { bindings?: unknown };
  return {
    name: textOf(values.name) ?? packageName(basename(folder)),
    main: resolve(folder, main),
    folder,
    date: textOf(values.compatibility_date) ?? DATE,
    flags: list(values.compatibility_flags).map(String),
    vars: (values.vars ?? {}) as Record<string, unknown>,
    services: list(values.services).map(({ binding, service, entrypoint }) => ({
      ...{ binding: String(binding), service: String(service) },
      ...(entrypoint !== undefined && { entrypoint: String(entrypoint) }),
    })),
    objects: list(bindings).map(({ name, class_name, script_name }) => ({
      ...{ binding: String(name), className: String(class_name) },
      ...(script_name !== undefined && { service: String(script_name) }),
    })),
    // The databases of a class stay where its first name put them.
    classes: classesMade(declaringIn(config, env)),
    define: (values.define ?? {}) as Record<string, string>,
    alias: (values.alias ?? {}) as Record<string, string>,
    warnings: warningsOf(values, file),
  };
}

export function handlerIn(folder: string, env: string | undefined): ServedWorker {
  const whole = resolve(folder);
  const found = configIn(whole);
  // Environments are those of the queue's configuration; a handler may have the same ones.
  const named =
    env !== undefined && found && hasAny(own((found.config.values.env ?? {}) as Record<string, unknown>, env));
  if (found) return workerOf(found.config, whole, named ? env : undefined);
  const names = ['index.ts', 'index.js', 'index.mjs', 'src/index.ts', 'src/index.js'];
  const main = names.map((name) => join(whole, name)).find((path) => existsSync(path));
  if (main === undefined) {
    throw new CliError(`${whole} has neither a wrangler configuration nor an index.ts or index.js.`);
  }
  const name = packageName(basename(whole));
  return { ...QUEUE_ALONE, ...{ name, main, folder: whole, flags: ['enable_request_signal'], classes: [] } };
}

function valuesOf({ values, file }: WranglerConfig, env: string | undefined): Record<string, unknown> {
  const all = values as Record<string, unknown>;
  if (env === undefined) return all;
  const chosen = own((values.env ?? {}) as Record<string, Record<string, unknown>>, env);
  if (!chosen) throw new CliError(`${file} has no environment ${env}.`);
  const inherited = Object.entries(all).filter(([name]) => !OWN_ONLY.includes(name) && name !== 'env');
  return { ...Object.fromEntries(inherited), ...chosen };
}

const hasAny = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : typeof value === 'object' && value !== null;

function warningsOf(values: Record<string, unknown>, file: string): string[] {
  const { crons } = (values.triggers ?? {}) as { crons?: unknown };
  return [
    hasAny(crons) && `${file}: triggers.crons do not fire here; schedules of the queue do.`,
    hasAny(values.analytics_engine_datasets) && `${file}: there is no analytics engine here.`,
  ].filter((warning) => warning !== false);
}

/** Runs the build that a configuration asks for, where the program was started, as wrangler does. */
function build(settings: unknown): void {
  const { command, cwd = '.' } = (settings ?? {}) as { command?: unknown; cwd?: string };
  if (typeof command !== 'string' || command === '') return;
  const { status, stdout, stderr } = spawnSync(command, { cwd: resolve(cwd), shell: true, encoding: 'utf8' });
  if (status === 0) return;
  const output = stripVTControlCharacters(`${stdout}${stderr}`).trim().split('\n');
  const why = output.find((line) => /error/i.test(line)) ?? output.at(-1);
  throw new CliError(`The build "${command}" ended with code ${status}.`, why);
}
