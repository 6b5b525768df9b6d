import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { constants } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { Command } from 'commander';
import { integer, print } from '../command';
import { DEFAULT_URL } from '../connection';
import { CliError, EXIT } from '../failure';
import { ANYWHERE, openFront } from '../front';
import { optionIn } from '../option';
import type { Terminal } from '../output';
import { runnableWrangler } from '../project/wrangler';
import { findConfig, type WranglerConfig } from '../project/wrangler-config';
import { sourceFrames } from '../source-frames';

interface Options {
  port?: number;
  open: boolean;
  json?: boolean;
}

/** Between two looks whether it serves, in ms. */
const LOOK_MS = 200;
const PORTS = 20;

/** wrangler prints this when it serves an edit. */
const RELOADED = 'updated and ready';

/** Any request has the Worker put into effect what its code declares. A failing one is not shown to the user. */
function awaken(url: string): void {
  fetch(`${url}/ojs/v1/health`).catch(() => undefined);
}

export function devCommand(terminal: Terminal): Command {
  return new Command('dev')
    .description('run the Worker in this folder locally: queue, handlers and routes')
    .option('--port <n>', 'port to listen on; default 8787, or the next free port', integer(1, 65_535))
    .option('--no-open', 'do not open the browser')
    .option('--json', 'print JSON')
    .argument('[wrangler...]', 'further arguments for wrangler dev')
    .allowUnknownOption()
    .action(async (more: string[], options: Options) => {
      const folder = process.cwd();
      const config = findConfig(folder);
      if (!config)
        throw new CliError('No wrangler configuration in this folder.', 'Create a project with: npx tocsin init');
      const { node, script } = runnableWrangler(folder);
      const port = options.port ?? (await freePort(config));
      const front = await frontFor(config, port, more);
      const url = front?.url ?? `https://localhost:${port}`;
      const args = front ? [...front.more, ...front.args] : ['--port', String(port), ...more, ...ANYWHERE];
      // Standard output is for JSON alone.
      const out = options.json ? process.stderr : process.stdout;
      const env = { X_LOCAL_OBSERVABILITY: 'false', ...(out.isTTY && { FORCE_COLOR: '1' }), ...process.env };
      const child = spawn(node, [script, 'dev', ...args], { stdio: ['inherit', 'pipe', 'pipe'], env });
      for (const [from, to] of [
        [child.stdout, out],
        [child.stderr, process.stderr],
      ] as const) {
        from.setEncoding('utf8').on('data', (text: string) => {
          to.write(front ? front.read(text) : text);
          if (stripVTControlCharacters(text).includes(RELOADED)) awaken(url);
        });
      }
      const ended = once(child, 'exit') as Promise<[code: number | null, signal: NodeJS.Signals | null]>;
      let stopped: NodeJS.Signals | undefined;
      const stop = (signal: NodeJS.Signals) => {
        stopped ??= signal;
        // Ctrl-C at a terminal reaches wrangler as well, which then ends by itself.
        if (signal !== 'SIGINT' || !terminal.interactive) child.kill('SIGTERM');
      };
      for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
      onceOrphaned(() => stop('SIGTERM'));
      const over = new AbortController();
      const announced = announce(url, terminal, options, over.signal);
      const [code] = await ended;
      front?.close();
      over.abort();
      await announced;
      if (stopped === 'SIGINT') return;
      const exit = stopped === undefined ? (code ?? EXIT.failure) : 128 + constants.signals[stopped];
      if (exit !== 0) throw new CliError(`wrangler dev exited with code ${exit}.`, undefined, 'ended', exit);
    });
}

/** The proxy and the remaining arguments; over HTTPS there is no proxy, because certificates keep out strangers. */
async function frontFor({ values }: WranglerConfig, port: number, given: readonly string[]) {
  const protocol = optionIn(given, '--local-protocol').value ?? values.dev?.local_protocol;
  if (protocol === 'https') return undefined;
  const { value: ip = values.dev?.ip, rest } = optionIn(given, '--ip');
  try {
    const front = await openFront(port, typeof ip === 'string' ? ip : undefined, sourceFrames(process.cwd()));
    return { ...front, more: rest };
  } catch (error) {
    throw new CliError(error instanceof Error ? error.message : String(error), 'Choose another port with --port.');
  }
}

/** The port of the configuration, or the first from 8787 on that no one listens at. */
async function freePort({ values }: WranglerConfig): Promise<number> {
  if (typeof values.dev?.port === 'number') return values.dev.port;
  const first = Number(new URL(DEFAULT_URL).port);
  for (let port = first; port < first + PORTS; port++) if (await isFree(port)) return port;
  throw new CliError(`The ports from ${first} to ${first + PORTS - 1} are in use.`, 'Choose another with --port.');
}

async function isFree(port: number): Promise<boolean> {
  for (const host of ['127.0.0.1', '::1']) {
    const server = createServer();
    const taken = await new Promise<boolean>((resolve) => {
      // A machine without IPv6 has that port free.
      server.once('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(/^(EADDRINUSE|EACCES)$/.test(code)));
      server.listen(port, host, () => server.close(() => resolve(false)));
    });
    if (taken) return false;
  }
  return true;
}

/** Calls `listener` when the npm that runs this program has ended: a killed npm forwards no signal. */
function onceOrphaned(listener: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    listener();
  }, LOOK_MS);
  timer.unref();
}

/** Says where the queue is once it serves, and opens the browser. */
async function announce(url: string, terminal: Terminal, { open, json }: Options, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const answer = await fetch(`${url}/ojs/v1/health`, { signal: over }).catch(() => undefined);
    if (answer?.ok) break;
    await pause(LOOK_MS, undefined, { signal: over }).catch(() => undefined);
  }
  if (over.aborted) return;
  const address = url === DEFAULT_URL ? '' : ` --url ${url}`;
  const commands = ['enqueue <type> [args…]', 'tail'].map((command) => `  npx tocsin ${command}${address}\n`);
  const dashboard = `${url}/ojs/ui`;
  print(terminal, json, { url, dashboard }, () => {
    return `\nThe queue is ready at ${url}\n  Dashboard: ${dashboard}\n${commands.join('')}`;
  });
  if (open && terminal.interactive) openBrowser(url);
}

/** The program that opens an address, with its arguments before that; elsewhere it is xdg-open. */
const OPENERS: Readonly<Record<string, readonly string[]>> = { darwin: ['open'], win32: ['cmd', '/c', 'start', ''] };

function openBrowser(url: string): void {
  const [command = '', ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const child = spawn(command, [...args, url], { stdio: 'ignore', detached: true });
  // The address is printed; nothing is lost.
  child.once('error', () => undefined);
  child.unref();
}
