/** Programs in a terminal of the system, as people run them: `script` of util-linux makes one. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';

/** Why no terminal can be made here; false: one can. */
export const lacksTerminal = () =>
  /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '')
    ? false
    : 'script of util-linux is not installed';

const quoted = (word) => `'${String(word).replaceAll("'", "'\\''")}'`;

/** Printed by the terminal itself, before the program and after it. */
const SETTINGS = /settings ([\da-f:]+)\r?$/gm;

const LIMIT_MS = 120_000;

/**
 * Runs a program in a terminal with colours. `CI` is not set: it may ask.
 * @param {string[]} command
 * @param {{ columns?: number, rows?: number, cwd?: string, env?: Record<string, string> }} [options]
 */
export function inTerminal(command, { columns = 120, rows = 30, cwd, env = {} } = {}) {
  const line = command.map(quoted).join(' ');
  const whole = `trap : INT; stty rows ${rows} cols ${columns}; echo settings $(stty -g); ${line}; code=$?; echo settings $(stty -g); exit $code`;
  const { CI, NO_COLOR, FORCE_COLOR, ...inherited } = process.env;
  const child = spawn('script', ['-qfec', whole, '/dev/null'], {
    ...{ cwd, detached: true, stdio: ['pipe', 'pipe', 'inherit'] },
    env: { ...inherited, TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
  });
  const run = {
    child,
    columns,
    /** All that it has drawn, with its control sequences. */
    raw: '',
    ended: once(child, 'close').then(([code]) => code),
    /** The same as text. */
    get text() {
      return stripVTControlCharacters(run.raw).replaceAll('\r', '');
    },
    type: (keys) => child.stdin.write(keys),
    /** Waits until it has drawn something. */
    async until(pattern) {
      const late = AbortSignal.timeout(LIMIT_MS);
      for (;;) {
        const found = pattern.exec(run.text);
        if (found) return found;
        const ended = run.ended.then((code) => `it ended with ${code}`);
        const waited = once(child.stdout, 'data', { signal: late }).then(
          () => undefined,
          () => 'it was too late',
        );
        const why = await Promise.race([waited, ended]);
        if (why && !pattern.test(run.text)) assert.fail(`${pattern}: ${why}:\n${run.text}`);
      }
    },
    /** Does the terminal have the settings of before: it echoes and reads lines? */
    isRestored() {
      const settings = [...run.raw.matchAll(SETTINGS)].map(([, text]) => text);
      return settings.length === 2 && settings[0] === settings[1];
    },
    kill() {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    },
  };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    run.raw += text;
  });
  return run;
}
