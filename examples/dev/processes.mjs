/** Ends a process with all processes that it started, and notices the end of the one that started this script. */
import { execFileSync, spawn } from 'node:child_process';

/** How long a process may take to end by itself, in ms. */
const GRACE_MS = 5_000;

/** How often to check that npm still runs, in ms. */
const PARENT_CHECK_MS = 100;

/**
 * Asks a child process to end and waits until it has. One that does not is killed with all its descendants.
 * @param {import('node:child_process').ChildProcess} child
 */
export async function endProcess(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  if (process.platform === 'win32') return await endTree(child);
  // When the child has ended, its descendants have another parent. So they are looked up before.
  const family = descendantsOf(child.pid);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
  await ended;
  clearTimeout(timer);
  for (const pid of family) kill(pid);
}

/**
 * Windows has no signals that a process could answer, and no parents to look up afterwards: the tree is ended at once.
 * @param {import('node:child_process').ChildProcess} child
 */
async function endTree(child) {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  spawn('taskkill', ['/pid', String(child.pid), '/t', '/f'], { stdio: 'ignore' }).once('error', () => child.kill());
  await ended;
}

/**
 * Calls `listener` when the npm that runs this script has ended, or the shell between them: npm ends that shell and
 * forwards nothing to what it runs, and a killed npm does not even do that.
 * @param {() => void} listener
 */
export function onceWithoutNpm(listener) {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const above = [parent, ...parentOfShell(parent)];
  const timer = setInterval(() => {
    if (process.ppid === parent && above.every(runs)) return;
    clearInterval(timer);
    listener();
  }, PARENT_CHECK_MS);
  timer.unref();
}

/** The parent of this process, if it is a shell with one command; dash, for one, does not become that command. */
function parentOfShell(pid) {
  try {
    const line = execFileSync('ps', ['-o', 'ppid=,args=', '-p', String(pid)], { encoding: 'utf8' });
    const [, parent] = /^\s*(\d+)\s+\S*sh -c /.exec(line) ?? [];
    return parent === undefined ? [] : [Number(parent)];
  } catch {
    return [];
  }
}

function runs(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/**
 * The processes below `root`, as far as the system tells.
 * @param {number} root
 * @returns {number[]}
 */
export function descendantsOf(root) {
  let table;
  try {
    table = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  } catch {
    return [];
  }
  const children = new Map();
  for (const line of table.trim().split('\n')) {
    const [pid, parent] = line.trim().split(/\s+/).map(Number);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const found = [];
  for (
    let level = children.get(root) ?? [];
    level.length > 0;
    level = level.flatMap((pid) => children.get(pid) ?? [])
  ) {
    found.push(...level);
  }
  return found;
}

/**
 * Ends a process at once, if it still runs.
 * @param {number} pid
 */
export function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself, as it should.
  }
}
