/** Installs the dependencies of a project with the package manager it uses. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CliError } from '../failure';
import type { Terminal } from '../output';

const LOCKS = {
  'package-lock.json': 'npm',
  'pnpm-lock.yaml': 'pnpm',
  'yarn.lock': 'yarn',
  'bun.lock': 'bun',
  'bun.lockb': 'bun',
} as const;

/** The package manager of a project: by its lock file, else the one that runs this program, else npm. */
export function managerOf(folder: string, env: Terminal['env']): string {
  const lock = Object.entries(LOCKS).find(([file]) => existsSync(join(folder, file)));
  if (lock) return lock[1];
  const running = env.npm_config_user_agent?.split('/')[0] ?? '';
  return Object.values<string>(LOCKS).includes(running) ? running : 'npm';
}

/** Variables of npx about the folder of the call: the install is about another folder. */
const OF_THE_CALL = /^(npm_(lifecycle|package|command|config_local)|INIT_CWD)/;

/** Runs `install` in a folder. @param quiet print nothing @throws {CliError} when it fails */
export async function install(folder: string, env: Terminal['env'], quiet: boolean): Promise<void> {
  const manager = managerOf(folder, env);
  const code = await new Promise<number>((resolve) => {
    const child = spawn(manager, ['install'], {
      cwd: folder,
      env: Object.fromEntries(Object.entries(env).filter(([name]) => !OF_THE_CALL.test(name))),
      stdio: ['ignore', quiet ? 'ignore' : 'inherit', 'inherit'],
      // On Windows package managers are scripts.
      shell: process.platform === 'win32',
    });
    child.once('error', () => resolve(127));
    child.once('exit', (exit) => resolve(exit ?? 1));
  });
  if (code === 0) return;
  throw new CliError(
    `"${manager} install" exited with code ${code}.`,
    'All files are written. Install the dependencies by hand.',
  );
}
