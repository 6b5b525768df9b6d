/** A user's project in a folder of its own, with the package as `npm pack` makes it. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { freePort } from '../crash/server.mjs';
import { end, launch, QUIET, ready, root } from '../docs/dev.mjs';

/** How long the slowest step, an install, may take, in ms. */
const STEP_MS = 300_000;

/** The user has neither this project's tools nor the npm that runs its tests. */
const ENVIRONMENT = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_(?!config)|INIT_CWD|TOCSIN_)/.test(name)),
  ),
  ...QUIET,
  PATH: process.env.PATH.split(delimiter)
    .filter((path) => !path.startsWith(root))
    .join(delimiter),
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_prefer_offline: 'true',
};

let tarball;

/** The package as `npm pack` makes it, once for all files of tests, which run in one process. @returns {string} the tarball's path */
function packed() {
  if (tarball) return tarball;
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-packed-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  execFileSync('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: root, stdio: 'pipe' });
  tarball = join(
    folder,
    readdirSync(folder).find((name) => name.endsWith('.tgz')),
  );
  return tarball;
}

/** Unpacks the package into a folder, as an install does. */
export function unpack(folder) {
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['-xzf', packed(), '--strip-components=1', '-C', folder]);
}

/** Makes an empty folder for a project that is to install the package. */
export function createProject() {
  const base = mkdtempSync(join(tmpdir(), 'tocsin-project-'));
  const folder = join(base, 'shop');
  mkdirSync(folder);
  return new Project(base, folder, packed());
}

class Project {
  /** Commands that the user has typed. */
  commands = 0;
  #running = [];

  constructor(base, folder, tarball) {
    Object.assign(this, { base, folder, tarball });
  }

  write(path, text) {
    const file = join(this.folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** Runs a command to its end. @returns {Promise<{ code: number, output: string }>} */
  async run(command, ...args) {
    this.commands++;
    const run = launch(command, args, { cwd: this.folder, env: { ...ENVIRONMENT, TOCSIN_URL: this.url ?? '' } });
    const code = await Promise.race([run.exited, timeout(STEP_MS)]);
    await end(run);
    return { code, output: run.output };
  }

  /** Runs a command that must succeed. @returns {Promise<string>} what it printed */
  async ok(command, ...args) {
    const { code, output } = await this.run(command, ...args);
    if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}`);
    return output;
  }

  /** `npm run dev` at a free port, until it serves. */
  async dev() {
    this.commands++;
    const ports = ['--port', String(await freePort()), '--inspector-port', '0'];
    const run = launch('npm', ['run', 'dev', '--', ...ports], { cwd: this.folder, env: ENVIRONMENT });
    this.#running.push(run);
    this.url = await ready(run, STEP_MS);
  }

  async remove() {
    for (const run of this.#running) await end(run);
    rmSync(this.base, { recursive: true, force: true });
  }
}

function timeout(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms, null).unref());
}
