/** What `init` is going to do to a folder: every file with its text before and after, and what only a human can do. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, extname, join, posix } from 'node:path';
import { builtBy, FRAMEWORKS_PAGE } from './frameworks';
import { readJson } from './json-text';
import { adaptModule, exportLine, importOf } from './main-module';
import { extendPackage, type Wanted } from './package-json';
import * as templates from './templates';
import { DEV_DEPENDENCIES, INSTALL_SCRIPTS, POOL } from './toolchain';
import {
  type ConfigFormat,
  type ConfigNeeds,
  findConfig,
  mainsOf,
  needsOf,
  partsOf,
  readConfig,
  snippetFor,
  type WranglerConfig,
  withQueue,
} from './wrangler-config';

export interface Change {
  path: string;
  action: 'create' | 'change';
  text: string;
  note: string;
}

export interface ByHand {
  path: string;
  why: string;
  lines: string;
}

export interface Plan {
  existing: boolean;
  changes: Change[];
  /** Files that are there and stay as they are. */
  kept: string[];
  byHand: ByHand[];
  install: boolean;
}

export interface PlanOptions {
  name: string;
  format: ConfigFormat;
  /** Where the package comes from: a version, or anything npm takes. */
  tocsin: string;
}

/** Looks at the folder and decides; nothing is written. @throws {CliError} when one of its files cannot be read */
export function planInit(folder: string, options: PlanOptions): Plan {
  const config = findConfig(folder);
  const plan: Plan = { existing: config !== undefined, changes: [], kept: [], byHand: [], install: false };
  const project = new Folder(folder, plan);
  if (config) addToWorker(project, config, options);
  else startProject(project, options);
  return plan;
}

class Folder {
  constructor(
    readonly path: string,
    readonly plan: Plan,
  ) {}

  read(path: string): string | undefined {
    const file = join(this.path, path);
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  }

  create(path: string, text: string, note: string): void {
    if (this.read(path) === undefined) this.plan.changes.push({ path, action: 'create', text, note });
    else this.plan.kept.push(path);
  }

  change(path: string, text: string, note: string): void {
    if (text !== this.read(path)) this.plan.changes.push({ path, action: 'change', text, note });
  }

  extendPackage(wanted: Wanted, created: string): void {
    const text = this.read('package.json');
    const { text: extended, added } = extendPackage(text ?? created, wanted);
    if (added.some(([section]) => /dependencies/i.test(section))) this.plan.install = true;
    if (text === undefined) this.create('package.json', extended, 'scripts and dependencies');
    else if (added.length > 0) this.change('package.json', extended, bySection(added));
  }
}

/** `scripts dev, test; dependencies tocsin` */
function bySection(added: readonly (readonly [section: string, name: string])[]): string {
  const sections = [...new Set(added.map(([section]) => section))];
  return sections
    .map((section) => [section, added.filter(([of]) => of === section).map(([, name]) => name)] as const)
    .map(([section, names]) => `${section} ${names.length > 4 ? `(${names.length})` : names.join(', ')}`)
    .join('; ');
}

function startProject(project: Folder, { name, format, tocsin }: PlanOptions): void {
  const config = `wrangler.${format}`;
  const created = `${JSON.stringify({ name, version: '0.0.0', private: true, type: 'module' }, null, 2)}\n`;
  project.extendPackage(
    {
      scripts: { dev: 'tocsin dev', test: 'vitest run', types: 'tsc --noEmit', deploy: 'tocsin deploy' },
      dependencies: { tocsin },
      devDependencies: DEV_DEPENDENCIES,
      allowScripts: Object.fromEntries(INSTALL_SCRIPTS.map((script) => [script, true])),
    },
    created,
  );
  project.create(config, templates.wranglerConfig(format, name), 'the Worker and its objects');
  project.create('src/tocsin.ts', templates.deploymentModule(true), 'the queue and its handlers');
  const main = project.read('src/index.ts');
  if (main === undefined)
    project.create('src/index.ts', templates.mainModule('./tocsin'), 'a route that enqueues a job');
  else adaptMain(project, 'src/index.ts', main);
  project.create('tsconfig.json', templates.TSCONFIG, 'types of the Workers runtime');
  project.create('vitest.config.mts', templates.vitestConfig(config), 'tests in the Workers runtime');
  // A main module of the user's own has no greetings.
  if (main === undefined) {
    const test = templates.greetingTest('../src/tocsin');
    project.create('test/greeting.test.ts', test, 'a test of the route, the result and a delay');
    project.create('test/env.d.ts', templates.TEST_TYPES, 'types of the Worker in tests');
  }
  openLocalhost(project, templates.GITIGNORE);
}

function addToWorker(project: Folder, config: WranglerConfig, { name, tocsin }: PlanOptions): void {
  const built = mainsOf(config).map((main) => [main, builtBy(main, project.read('.gitignore'))] as const);
  const [main, framework] = built.find(([, by]) => by !== undefined) ?? [];
  if (framework !== undefined) {
    project.plan.byHand.push(workerBeside(config, String(main), framework, name));
    return;
  }
  const scripts = { dev: 'tocsin dev', deploy: 'tocsin deploy' };
  const devDependencies = addTestPool(project, config);
  project.extendPackage(
    { dependencies: { tocsin }, devDependencies, scripts },
    `${JSON.stringify({ private: true, type: 'module' }, null, 2)}\n`,
  );
  extendConfig(project, config);
  const mains = mainsOf(config).map((main) =>
    typeof main === 'string' ? posix.normalize(main.replaceAll('\\', '/')) : '',
  );
  for (const main of new Set(mains)) {
    const text = main === '' ? undefined : project.read(main);
    if (text === undefined) {
      const why =
        main === '' ? `${config.file} has no main module` : `${main} does not exist, so a build may create it`;
      project.plan.byHand.push({ path: main || config.file, why, lines: `${exportLine()}\n` });
    } else {
      adaptMain(project, main, text);
    }
  }
  openLocalhost(project);
}

/** The tools of tests in the Workers runtime, unless the project has a Vitest that does not fit. */
function addTestPool(project: Folder, { file }: WranglerConfig): Wanted[string] {
  const { vitest, [POOL]: pool } = DEV_DEPENDENCIES;
  const { dependencies, devDependencies } = (packageIn(project.path) ?? {}) as Partial<Wanted>;
  const present = { ...dependencies, ...devDependencies }.vitest;
  if (present !== undefined && !/^\D*(4\.[1-9]|5)/.test(String(present))) return {};
  const configs = ['vitest.config', 'vite.config'].flatMap((name) =>
    ['ts', 'mts', 'js', 'mjs'].map((extension) => `${name}.${extension}`),
  );
  if (configs.every((path) => project.read(path) === undefined)) {
    project.create('vitest.config.mts', templates.vitestConfig(file), 'tests in the Workers runtime');
  }
  return { vitest, [POOL]: pool };
}

/** A Worker that a build writes cannot hold the queue: it binds one that does. */
function workerBeside(config: WranglerConfig, main: string, framework: string, name: string): ByHand {
  const why = `${main} is written by ${framework}, so nothing was changed: the next build would remove the queue`;
  const service = { binding: 'TOCSIN', service: `${name}-queue`, entrypoint: 'Tocsin' };
  const members = Object.entries(service).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  const binding =
    config.format === 'toml' ? `[[services]]\n${members.join('\n')}` : `"services": [${JSON.stringify(service)}]`;
  const steps = [
    `1. Create a Worker of its own for the queue: npm create tocsin@latest ${name}-queue`,
    `2. Bind it in ${config.file}:`,
    binding,
    `3. Enqueue through the binding: ${FRAMEWORKS_PAGE}`,
  ];
  return { path: config.file, why, lines: `${steps.join('\n')}\n` };
}

function extendConfig(project: Folder, config: WranglerConfig): void {
  let extended = config;
  const notes: string[] = [];
  for (const env of partsOf(config)) {
    const needs = needsOf(extended, env);
    const of = env === undefined ? '' : ` in env.${env}`;
    if (needs.withoutSqlite.length > 0) {
      const why = `${needs.withoutSqlite.join(', ')} was created without SQLite${of}; the queue needs classes created by new_sqlite_classes`;
      project.plan.byHand.push({ path: config.file, why, lines: '' });
    }
    if (needs.classes.length === 0 && needs.flags.length === 0) continue;
    const text = withQueue(extended, needs, env);
    if (text === undefined) {
      const why = `${env === undefined ? '' : `for env.${env}, `}it cannot be extended without rewriting it`;
      project.plan.byHand.push({ path: config.file, why, lines: partLines(extended, needs, env) });
      continue;
    }
    extended = readConfig(config.file, text);
    if (needs.classes.length > 0) notes.push(`the classes of the queue's objects${of}`);
    if (needs.flags.length > 0) notes.push(`${flagsIn(needs)}${of}: its compatibility date is old`);
  }
  project.change(config.file, extended.text, notes.join('; '));
}

const flagsIn = ({ flags }: ConfigNeeds) =>
  `the flag${flags.length > 1 ? 's' : ''} ${flags.map(({ flag }) => flag).join(', ')}`;

function partLines(config: WranglerConfig, { flags, classes }: ConfigNeeds, env: string | undefined): string {
  const missing = flags.map(({ flag }) => JSON.stringify(flag)).join(', ');
  const flag = missing === '' ? '' : `compatibility_flags: add ${missing}\n`;
  return flag + (classes.length > 0 ? snippetFor(config, classes, env) : '');
}

/** The lines that a configuration lacks, in its format; those of an environment below its name. */
export function linesNeeded(config: WranglerConfig): string {
  const comment = config.format === 'toml' ? '#' : '//';
  return partsOf(config)
    .flatMap((env) => {
      const lines = partLines(config, needsOf(config, env), env);
      return lines === '' ? [] : [env === undefined ? lines : `${comment} env.${env}\n${lines}`];
    })
    .join('\n');
}

/** Puts the queue into the main module, with its handlers in a module beside it. */
function adaptMain(project: Folder, main: string, text: string): void {
  const extension = extname(main);
  const typescript = /ts/.test(extension);
  const moduleExtension = typescript ? '.ts' : extension === '.jsx' ? '.js' : extension;
  const folder = dirname(main) === '.' ? '' : `${dirname(main)}/`;
  const file = (name: string) => `${folder}${name}${moduleExtension}`;
  // A file of this name that has nothing to do with the queue keeps it.
  const name = ['tocsin', 'tocsin-queue'].find((one) => {
    const there = project.read(file(one));
    return there === undefined || there.includes("'tocsin/queue'") || there.includes('"tocsin/queue"');
  });
  const adapted = adaptModule(text, main, importOf(text, name ?? 'tocsin', moduleExtension));
  if (adapted.kind === 'complete') return;
  if (name !== undefined && !project.plan.changes.some(({ path }) => path === file(name))) {
    project.create(file(name), templates.deploymentModule(typescript), 'the queue and its handlers');
  }
  if (adapted.kind === 'changed') project.change(main, adapted.text, adapted.added.join('; '));
  else project.plan.byHand.push({ path: main, why: adapted.why, lines: `${adapted.lines}\n` });
}

/** In development the queue takes requests to localhost without a key. @param gitignore of a new project */
function openLocalhost(project: Folder, gitignore?: string): void {
  // wrangler reads .env only where there is no .dev.vars.
  const path = project.read('.dev.vars') === undefined && project.read('.env') !== undefined ? '.env' : '.dev.vars';
  const variables = project.read(path);
  if (variables === undefined) project.create(path, templates.DEV_VARS, 'no key is needed on this machine');
  else if (!/^\s*(export\s+)?ALLOW_LOCALHOST\s*=/m.test(variables)) {
    project.change(path, withLines(variables, templates.DEV_VARS), 'no key is needed on this machine');
  }
  const ignored = project.read('.gitignore');
  if (ignored === undefined) {
    if (gitignore !== undefined) project.create('.gitignore', gitignore, 'files that must not be committed');
    return;
  }
  const wanted = gitignore === undefined ? ['.dev.vars'] : gitignore.trim().split('\n');
  const there = new Set(ignored.split(/\r?\n/).map((line) => line.trim().replace(/^\/|\/$|\*$/g, '')));
  const missing = wanted.filter(
    (line) => !there.has(line.replace(/\/$/, '')) && (line !== '.dev.vars' || path === line),
  );
  if (missing.length > 0)
    project.change('.gitignore', withLines(ignored, `${missing.join('\n')}\n`), missing.join(', '));
}

const withLines = (text: string, lines: string): string =>
  `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${lines}`;

export function nameIn(folder: string): string | undefined {
  const name = packageIn(folder)?.name;
  return typeof name === 'string' ? name : undefined;
}

export function scriptIn(folder: string, script: string): string | undefined {
  const { [script]: text } = (packageIn(folder)?.scripts ?? {}) as Record<string, unknown>;
  return typeof text === 'string' ? text : undefined;
}

function packageIn(folder: string): Record<string, unknown> | undefined {
  const file = join(folder, 'package.json');
  return existsSync(file) ? readJson(readFileSync(file, 'utf8'), 'package.json') : undefined;
}
