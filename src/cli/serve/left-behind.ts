/** A workerd that a killed `serve` left behind: two at one folder would write over each other. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CliError } from '../failure';
import type { StateFolder } from './folder';
import { occupantOf } from './local-socket';
import { InUse } from './lock';

/** A killed process has ended within this time, ms. */
const STOP_MS = 5_000;
const LOOK_MS = 10;

/** The configuration that workerd is started with: its last argument. */
const CONFIG = 'config.capnp';
export const configOf = ({ run }: StateFolder): string => join(run, CONFIG);

interface Process {
  pid: number;
  parent: number;
  /** With blanks between. */
  args: string;
  /** The last one, where the system tells them apart: the folder may have another name there. */
  last: string;
}

/** The number of the workerd process that uses a folder, if any; not from files, which may be gone. */
export const leftBehind = (folder: StateFolder): number | undefined => servedBy(folder)?.pid;

/** @throws {InUse} where a workerd uses the folder whose `serve` still runs */
export async function refuseServed(folder: StateFolder): Promise<void> {
  const found = servedBy(folder);
  if (!found || !hasParent(folder, found)) return;
  throw new InUse(folder.path, (await occupantOf(folder.door)) ?? { pid: found.parent });
}

/** Ends a workerd left behind. @param notify gets its number @throws {InUse} {@link CliError} if it does not end */
export async function endLeftBehind(folder: StateFolder, notify: (pid: number) => void): Promise<void> {
  const pid = leftBehind(folder);
  if (pid === undefined) return;
  await refuseServed(folder);
  notify(pid);
  process.kill(pid, 'SIGKILL');
  for (let looks = 0; looks < STOP_MS / LOOK_MS; looks++) {
    if (leftBehind(folder) !== pid) return;
    await pause(LOOK_MS);
  }
  throw new CliError(`A workerd that was left behind (process ${pid}) does not end.`);
}

function servedBy(folder: StateFolder): Process | undefined {
  const config = configOf(folder);
  const run = realOf(folder.run);
  return processes().find(
    ({ args, last }) =>
      args.includes(' serve --control-fd=') &&
      (args.includes(config) || (basename(last) === CONFIG && realOf(dirname(last)) === run)),
  );
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** A process whose parent ends gets another one: so it is the `serve` that started it, or that has ended. */
function hasParent({ parent: file }: StateFolder, { parent }: Process): boolean {
  try {
    return Number(readFileSync(file, 'utf8')) === parent;
  } catch {
    // It is not known which one that was.
    return / serve( |$)/.test(processes().find(({ pid }) => pid === parent)?.args ?? '');
  }
}

function processes(): Process[] {
  if (process.platform === 'linux') return readdirSync('/proc').flatMap(processOf);
  if (process.platform === 'win32') {
    const query = `Get-CimInstance Win32_Process | % { "$($_.ProcessId) $($_.ParentProcessId) $($_.CommandLine)" }`;
    return execFileSync('powershell', ['-NoProfile', '-Command', query], { encoding: 'utf8' })
      .split('\n')
      .flatMap(lineOf);
  }
  return execFileSync('ps', ['-axww', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n').flatMap(lineOf);
}

function processOf(name: string): Process[] {
  if (!/^\d+$/.test(name)) return [];
  try {
    const args = readFileSync(`/proc/${name}/cmdline`, 'utf8').replace(/\0$/, '').split('\0');
    const [, parent] = readFileSync(`/proc/${name}/stat`, 'utf8')
      .replace(/^.*\)\s*/s, '')
      .split(' ');
    return [{ pid: Number(name), parent: Number(parent), args: args.join(' '), last: args.at(-1) ?? '' }];
  } catch {
    // It has ended.
    return [];
  }
}

function lineOf(line: string): Process[] {
  const [, pid, parent, args] = /^\s*(\d+)\s+(\d+)\s+(.*?)\s*$/.exec(line) ?? [];
  return args === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), args, last: '' }];
}
