/** Keeps workerd running: starts, restarts after a crash, pauses, ends it. Stored alarms survive. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { atMost, Changes } from '../../handler/timing';
import { CliError } from '../failure';
import type { StateFolder } from './folder';
import { byLine, reach } from './local-socket';
import type { Level, Log } from './log';

/** Pauses before another start, ms: twice as long each time. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** One that ran for this time was well, ms: what ended it then is not what keeps it from starting. */
const WELL_MS = 2_000;
/** It listens within this time, ms, or something is wrong. */
const START_MS = 30_000;
/** A stopped process has stopped within this time, ms. */
const STOP_MS = 5_000;
const LOOK_MS = 2;

export interface RuntimeOptions {
  binary: string;
  file: string;
  folder: StateFolder;
  env: Record<string, string>;
  log: Log;
  now(): number;
  host: string;
  /** It needs what workerd calls experimental. */
  isExperimental: boolean;
  ready(port: number): void;
  /** Does this process still have the lock of the folder? */
  mayStart(): Promise<boolean>;
}

export class Runtime {
  private child: ChildProcess | undefined;
  private startedAt = 0;
  /** Where it listened before: a port that was free then stays its own. */
  private address: string | undefined;
  private pauseMs = FIRST_PAUSE_MS;
  private ending = false;
  /** It stands still; `released` resolves when it may be started again. */
  private held: { id: number; released: Promise<void>; release(): void } | undefined;
  private holds = 0;
  /** The first error that it logged since its start. */
  private complaint = '';

  constructor(private readonly options: RuntimeOptions) {}

  /** Starts it, and from then on keeps it running. @throws {CliError} where it ends by itself before it listens */
  async start(): Promise<void> {
    const died = await this.launch();
    if (died === undefined || this.ending) return;
    // It was killed: this does not depend on its configuration.
    if (died.startsWith('SIG')) await this.again(died);
    else throw this.notStarted(died);
  }

  /** Ends without notice; for the way out of this process. */
  killNow(): void {
    this.ending = true;
    this.child?.kill('SIGKILL');
  }

  /** Asks the queue's Worker over the private socket; undefined where it does not answer. */
  async ask(path: string, withinMs: number): Promise<Record<string, unknown> | undefined> {
    const { inner } = this.options.folder;
    if (inner === undefined) return undefined;
    const createConnection = () => reach(inner, (short) => connect(short));
    const sent = request({ createConnection, path, method: 'POST', timeout: withinMs });
    sent.on('timeout', () => sent.destroy());
    sent.on('error', () => undefined);
    try {
      const [got] = (await once(sent.end(), 'response')) as [IncomingMessage];
      const answer = await text(got);
      return got.statusCode === 200 ? JSON.parse(answer) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Ends it: it closes its connections when their requests are answered, and is killed after the time. */
  async end(withinMs: number): Promise<void> {
    this.ending = true;
    this.release();
    const { child } = this;
    if (!child) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    if (!(await atMost(withinMs, gone))) child.kill('SIGKILL');
    await gone;
  }

  isHeld(id: number): boolean {
    return this.held?.id === id;
  }

  /** Pauses it until {@link release}; one that is not running is not started meanwhile. @returns its number */
  async hold(): Promise<number> {
    if (this.held) throw new CliError('Another backup is being made.');
    const id = ++this.holds;
    const changes = new Changes();
    this.held = { id, released: changes.next(), release: () => changes.notify() };
    const { child } = this;
    if (!child?.pid) return id;
    child.kill('SIGSTOP');
    const end = this.options.now() + STOP_MS;
    while (this.child === child && !hasStopped(child.pid)) {
      if (this.options.now() > end) {
        this.release();
        throw new CliError('workerd did not stop.');
      }
      await pause(LOOK_MS);
    }
    return id;
  }

  release(): void {
    this.child?.kill('SIGCONT');
    this.held?.release();
    this.held = undefined;
  }

  /** @returns why it died before it listened */
  private async launch(): Promise<string | undefined> {
    const { binary, file, folder, env, log, now, isExperimental } = this.options;
    if (folder.inner !== undefined) rmSync(folder.inner, { force: true });
    this.complaint = '';
    // `--import-path`: files that the configuration names from the root on. A group of its own: Ctrl-C at a terminal
    // goes to all processes of a group, and would cut off what runs.
    const port = this.address === undefined ? [] : [`--socket-addr=http=${this.address}`];
    const experimental = isExperimental ? ['--experimental'] : [];
    const child = spawn(binary, ['serve', '--control-fd=3', '--import-path=/', ...experimental, ...port, file], {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      detached: process.platform !== 'win32',
      // The configuration names the socket in this folder without it: a path may be too long for a socket.
      cwd: folder.run,
      env,
    });
    this.child = child;
    this.startedAt = now();
    const received = (message: string, level: Level) => {
      if (level === 'error') this.complaint ||= message;
    };
    child.stdout?.setEncoding('utf8').on('data', log.reader(received));
    child.stderr?.setEncoding('utf8').on('data', log.reader(received));
    writeFileSync(folder.parent, `${process.pid}\n`);
    if (child.pid !== undefined) writeFileSync(folder.pid, `${child.pid}\n`);
    const died = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('close', (code, signal) => resolve(signal === null ? `code ${code}` : signal));
    });
    let isReady = false;
    const listening = this.listening(child).then((port) => {
      isReady = true;
      this.address = `${this.options.host}:${port}`;
      this.options.ready(port);
    });
    died.then((how) => {
      this.child = undefined;
      if (isReady && !this.ending) void this.again(how);
    });
    const late = pause(START_MS, 'it did not listen in time', { ref: false });
    const how = await Promise.race([listening.then(() => undefined), died, late]);
    if (how !== undefined) child.kill('SIGKILL');
    return how;
  }

  /** The port, once it reports that it listens at all sockets. */
  private listening({ stdio }: ChildProcess): Promise<number> {
    const wanted = new Set(['http', ...(this.options.folder.inner === undefined ? [] : ['inner'])]);
    let port = 0;
    return new Promise((resolve) => {
      const read = byLine((line) => {
        if (line === '') return;
        const { event, socket, port: found } = JSON.parse(line) as { event: string; socket: string; port: number };
        if (event === 'listen' && socket === 'http') port = found;
        if (event === 'listen') wanted.delete(socket);
        if (wanted.size === 0) resolve(port);
      });
      (stdio[3] as Readable).setEncoding('utf8').on('data', read);
    });
  }

  private async again(how: string): Promise<void> {
    const { log, now } = this.options;
    if (now() - this.startedAt >= WELL_MS) this.pauseMs = FIRST_PAUSE_MS;
    for (let why: string | undefined = how; why !== undefined && !this.ending; ) {
      log.error(`workerd ended (${why}); it is started again in ${this.pauseMs} ms`);
      await pause(this.pauseMs);
      this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
      await this.held?.released;
      if (!this.ending && (await this.options.mayStart())) why = await this.launch();
    }
  }

  private notStarted(how: string): CliError {
    const isTaken = /address already in use/i.test(this.complaint);
    const hint = isTaken ? 'Name another port with --port, or end what listens there.' : 'The log above says more.';
    return new CliError(`workerd did not start (${how}): ${this.complaint || 'it did not say why'}`, hint);
  }
}

function hasStopped(pid: number): boolean {
  if (process.platform !== 'linux') {
    return /^T/.test(execFileSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' }).trim());
  }
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.every((thread) => stateOf(`/proc/${pid}/task/${thread}/stat`) === 'T');
}

/** The state of a thread: the first word after the name in brackets, which may have any characters. */
function stateOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').replace(/^.*\)\s*/s, '')[0];
  } catch {
    // A thread that has ended writes nothing more.
    return 'T';
  }
}
