/** Starts scripts of the examples as a process group of their own, so that a test can see what is left of it. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

/** How long a script may take to end after npm has, and the pause between two looks, in ms. */
const END_MS = 60_000;
const LOOK_MS = 50;

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** A folder for all that a started script writes; `temporary` in it is its temporary folder. */
export function makeFolder() {
  const path = mkdtempSync(join(tmpdir(), 'tocsin-examples-'));
  const temporary = join(path, 'temporary');
  mkdirSync(temporary);
  return { path, temporary, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/**
 * Runs `npm run <script>`.
 * @returns the child, what it prints, its exit, a wait for a text in what it prints, and the living of its group
 */
export function npmRun(script, args, temporary) {
  const child = spawn('npm', ['run', '--silent', script, '--', ...args], {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      TMPDIR: temporary,
      WRANGLER_REGISTRY_PATH: join(temporary, '../registry'),
      PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
      child.emit('output');
    });
  }
  const exit = once(child, 'exit').then(([code, signal]) => signal ?? code);
  return {
    child,
    exit,
    output: () => output,
    async until(pattern) {
      const failed = exit.then((code) => Promise.reject(new Error(`ended with ${code} before ${pattern}:\n${output}`)));
      for (;;) {
        const match = pattern.exec(stripVTControlCharacters(output));
        if (match) {
          failed.catch(() => undefined);
          return match;
        }
        await Promise.race([once(child, 'output'), failed]);
      }
    },
    /** What still runs. A process that ended and whose parent did not look is none. */
    processes() {
      const table = execFileSync('ps', ['-A', '-o', 'pgid=,pid=,stat=,args='], { encoding: 'utf8' });
      return table
        .split('\n')
        .map((line) => /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [])
        .filter(([, group, , state]) => Number(group) === child.pid && !state.startsWith('Z'))
        .map(([, , pid, , command]) => ({ pid: Number(pid), command }));
    },
    /**
     * Commands that still run, some seconds after npm has ended: where npm's shell stays between npm and the script, the
     * script notices their end a moment later, and ends what it started.
     */
    async remaining() {
      const deadline = Date.now() + END_MS;
      for (;;) {
        const commands = this.processes().map(({ command }) => command);
        if (commands.length === 0 || Date.now() > deadline) return commands;
        await delay(LOOK_MS);
      }
    },
    /** Ends all at once, for the end of a test. */
    kill() {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // Nothing is left.
      }
    },
  };
}
