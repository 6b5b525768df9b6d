/** `tocsin init`, which is also what `npm create tocsin` runs */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { isCancel, select, text } from '@clack/prompts';
import { Command, Option } from 'commander';
import { print } from '../command';
import { CliError, makeFolder, usageError } from '../failure';
import { facts, shellWord, type Terminal } from '../output';
import { exportLine } from '../project/main-module';
import { originFor } from '../project/origin';
import { packageName } from '../project/package-json';
import { linesNeeded, nameIn, type Plan, planInit, scriptIn } from '../project/plan';
import { type ConfigFormat, findConfig, snippet } from '../project/wrangler-config';

const LOCKS = {
  'package-lock.json': 'npm',
  'pnpm-lock.yaml': 'pnpm',
  'yarn.lock': 'yarn',
  'bun.lock': 'bun',
  'bun.lockb': 'bun',
} as const;

/** The package manager of a project: by its lock file, else the one that runs this program, else npm. */
function managerOf(folder: string, env: Terminal['env']): string {
  const lock = Object.entries(LOCKS).find(([file]) => existsSync(join(folder, file)));
  if (lock) return lock[1];
  const running = env.npm_config_user_agent?.split('/')[0] ?? '';
  return Object.values<string>(LOCKS).includes(running) ? running : 'npm';
}

/** Variables of npx about the folder of the call: the install is about another folder. */
const OF_THE_CALL = /^(npm_(lifecycle|package|command|config_local)|INIT_CWD)/;

/** Runs `install` in a folder. @param quiet print nothing @throws {CliError} when it fails */
async function install(folder: string, env: Terminal['env'], quiet: boolean): Promise<void> {
  const manager = managerOf(folder, env);
  const child = spawn(manager, ['install'], {
    cwd: folder,
    env: Object.fromEntries(Object.entries(env).filter(([name]) => !OF_THE_CALL.test(name))),
    stdio: ['ignore', quiet ? 'ignore' : 'inherit', 'inherit'],
    // On Windows package managers are scripts.
    shell: process.platform === 'win32',
  });
  const [code] = (await once(child, 'exit').catch(() => [127])) as [number | null];
  if (code === 0) return;
  const hint = 'All files are written. Install the dependencies by hand.';
  throw new CliError(`"${manager} install" exited with code ${code ?? 1}.`, hint);
}

interface Options {
  yes?: boolean;
  config?: ConfigFormat;
  print?: ConfigFormat | true;
  install: boolean;
  dryRun?: boolean;
  tocsin?: string;
  json?: boolean;
}

/** @param folder the default; undefined: ask for it */
export function initCommand(terminal: Terminal, version: string, folder: string | undefined): Command {
  const command = new Command('init')
    .description('add the queue to the Worker in a folder, or start a project there')
    .argument('[folder]', folder === undefined ? 'where' : 'project folder; default: this one')
    .option('-y, --yes', 'do not ask; existing files are extended, never replaced')
    .addOption(new Option('--config <format>', 'format of a new wrangler configuration').choices(['jsonc', 'toml']))
    .addOption(
      new Option('--print [format]', 'print the lines to add by hand, and change nothing').choices(['jsonc', 'toml']),
    )
    .option('--dry-run', 'show what would change, and change nothing')
    .option('--no-install', 'do not install dependencies')
    .addOption(new Option('--tocsin <spec>', 'version or location of the package').env('TOCSIN_SPEC').hideHelp())
    .option('--json', 'print JSON');
  return command.action(async (named: string | undefined, options: Options) => {
    if (options.print) return printLines(terminal, resolve(named ?? folder ?? '.'), options);
    const asks = terminal.interactive && !options.yes && !options.json;
    if (!asks && !options.yes && !options.dryRun) {
      const hint = 'Pass --yes, or --dry-run to see what would change.';
      throw usageError('Cannot ask for confirmation without a terminal.', hint);
    }
    const chosen = named ?? folder ?? (asks ? await askFolder() : 'my-queue');
    const path = resolve(chosen);
    const isNew = findConfig(path) === undefined;
    const format = options.config ?? (asks && isNew ? await askFormat() : 'jsonc');
    const name = packageName(nameIn(path) ?? basename(path));
    const plan = planInit(path, { name, format, tocsin: options.tocsin ?? originFor(path) ?? `^${version}` });
    if (asks && plan.changes.length > 0) {
      terminal.out(`${planText(plan)}\n`);
      if (!options.dryRun && !(await terminal.confirm('Write these files?'))) throw declined();
    }
    if (!options.dryRun) {
      write(path, plan);
      if (plan.install && options.install) await install(path, terminal.env, options.json === true);
    }
    const { existing, changes, kept, byHand } = plan;
    const listed = changes.map(({ path, action, note }) => ({ path, action, note }));
    const answer = { folder: path, existing, changes: listed, kept, by_hand: byHand, written: !options.dryRun };
    print(terminal, options.json, answer, () => {
      const done = asks && plan.changes.length > 0 ? '' : planText(plan);
      return [done, options.dryRun ? '' : nextText(path, plan, options.install, terminal)].filter(Boolean).join('\n\n');
    });
    if (byHand.length > 0 && !options.dryRun) {
      const message = `Some lines must be added by hand: ${byHand.map(({ path }) => path).join(', ')}.`;
      throw new CliError(message, 'Check the result with: npx tocsin doctor', 'by_hand');
    }
  });
}

function printLines(terminal: Terminal, folder: string, { print: given, json }: Options): void {
  const found = findConfig(folder);
  const format = typeof given === 'string' ? given : (found?.format ?? 'jsonc');
  const config = found ? linesNeeded({ ...found, format }) : snippet(format);
  const nothing = `Nothing to add: ${found?.file} has what the queue needs.`;
  print(terminal, json, { format, config, exports: exportLine() }, () => config.trimEnd() || nothing);
}

/** Writes what is planned. A file that has come into being meanwhile is not overwritten. */
function write(folder: string, plan: Plan): void {
  for (const { path, action, text } of plan.changes) {
    const file = join(folder, path);
    makeFolder(dirname(file));
    writeFileSync(file, text, { flag: action === 'create' ? 'wx' : 'w' });
  }
}

function planText({ changes, kept, byHand }: Plan): string {
  const lines = [
    ...changes.map(({ path, action, note }) => [action, path, note] as const),
    ...kept.map((path) => ['keep', path, 'already there'] as const),
  ];
  const width = Math.max(0, ...lines.map(([, path]) => path.length));
  const files = facts(lines.map(([action, path, note]) => [action, `${path.padEnd(width)}  ${note}`]));
  const manual = byHand.map(({ path, why, lines }) =>
    `by hand ${path}: ${why}.\n${lines.replace(/^(?=.)/gm, '    ')}`.trimEnd(),
  );
  return [files || 'Nothing to do: this folder already has the queue.', ...manual].join('\n\n');
}

function nextText(folder: string, plan: Plan, installs: boolean, terminal: Terminal): string {
  if (plan.byHand.length > 0 || plan.changes.length === 0) return '';
  const here = relative(process.cwd(), folder);
  const manager = managerOf(folder, terminal.env);
  const steps = [
    ...(here === '' ? [] : [`cd ${shellWord(here)}`]),
    ...(installs || !plan.install ? [] : [`${manager} install`]),
    // A Worker may have a script of its own under this name.
    scriptIn(folder, 'dev')?.includes('tocsin dev') ? `${manager} run dev` : 'npx tocsin dev',
    'npx tocsin enqueue greeting.write Ada --wait      # in a second terminal',
  ];
  const note = deploysByItself(folder)
    ? '\n\nThe deploy script of package.json runs "wrangler deploy". Replace it with "tocsin deploy", which takes the same\narguments, and schedules declared in code start right after the deploy.'
    : '';
  return `Next:\n${steps.map((step) => `  ${step}`).join('\n')}${note}`;
}

/** Has the project a script that deploys, and does not put into effect what the code declares? It is the user's. */
function deploysByItself(folder: string): boolean {
  const script = scriptIn(folder, 'deploy');
  return script !== undefined && /\bwrangler deploy\b/.test(script) && !/\btocsin\b/.test(script);
}

const askFolder = async (): Promise<string> =>
  answered(await text({ message: 'Where?', defaultValue: 'my-queue', placeholder: 'my-queue' }));

async function askFormat(): Promise<ConfigFormat> {
  const options = [
    { value: 'jsonc' as const, label: 'wrangler.jsonc' },
    { value: 'toml' as const, label: 'wrangler.toml' },
  ];
  return answered(await select({ message: 'Which configuration?', options }));
}

function answered<T>(value: T): Exclude<T, symbol> {
  if (isCancel(value)) throw declined();
  return value as Exclude<T, symbol>;
}

const declined = () => new CliError('Nothing was written.', undefined, 'declined');
