import { execFileSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { rootCertificates } from 'node:tls';
import { own } from '../../job/own';
import { CliError, readText, usageError } from '../failure';
import type { Terminal } from '../output';
import { modulesOf } from './bundle';
import { type ClusterOptions, clusterOf, clusterWarning, OF_THE_CLUSTER } from './cluster';
import { type BuiltWorker, configText } from './config';
import { openDoor } from './door';
import { noteSchemas, openFolder, type Schemas, type StateFolder } from './folder';
import { configOf, endLeftBehind, refuseServed } from './left-behind';
import { Log } from './log';
import { findWorkerd } from './packages';
import { planWorkers, type WorkersOptions } from './plan';
import { Runtime } from './runtime';
import { countKeys, hasLogin, misspelt, readVariables } from './variables';
import type { ServedWorker } from './worker';

export interface ServeOptions extends WorkersOptions, ClusterOptions {
  state: string;
  host: string;
  port: number;
  /** Forwarded headers count: a proxy that sets them is the only client. */
  behindProxy?: boolean;
  tlsCert?: string;
  tlsKey?: string;
  envFile?: string;
  passEnv: readonly string[];
  allowNetwork: readonly string[];
  /** Time for calls that run when it is to end, ms. */
  grace: number;
  pretty?: boolean;
}

/** The queue is notified again to rest before it would continue, ms. */
const REST_MS = 2_000;
const LOOK_MS = 100;
/** Requests still open when nothing runs any more get this long, ms. */
const CLOSE_MS = 2_000;
/** In a cluster it gives its objects up in this time, ms, so that the others need not wait for its lease to end. */
const HAND_OVER_MS = 15_000;
/** A backup that holds up all writes for this time is given up, ms. */
const HOLD_MS = 60_000;

/** Serves until a signal ends it. @throws {CliError} where it cannot begin */
export async function serve(terminal: Terminal, cwd: string, options: ServeOptions): Promise<void> {
  const log = new Log(terminal.out, terminal.now, options.pretty === true, process.stdout.isTTY === true);
  const ofRuntime = options.cluster === undefined ? [] : OF_THE_CLUSTER;
  const variables = readVariables({ env: terminal.env, file: options.envFile, named: options.passEnv, ofRuntime });
  const cluster = clusterOf(options, variables.runtime);
  const { workers, table } = planWorkers(cwd, options, variables.queue.HANDLERS);
  const values: Record<string, unknown> = { ...workers[0]?.vars, ...variables.queue };
  refusePlace(values.DATA_LOCATION);
  const { binary, version, newestDate } = findWorkerd();
  checkDates(workers, version, newestDate);
  if (table) variables.queue.HANDLERS = JSON.stringify(table);
  const keys = countKeys(values.API_KEYS);
  const named = [...Object.keys(variables.shared), ...Object.keys(workers[0]?.vars ?? {})];
  for (const warning of misspelt(named)) log.warn(warning);
  const isOpen = !hasLogin(values.LOGIN, values.LOGIN_SECRET) && keys === 0;
  if (isOpen) openLoopback(variables.queue, options);
  const tls = tlsOf(options);

  const folder = openFolder(options.state, cluster?.bucket);
  const url = (port: number) => `${tls ? 'https' : 'http'}://${hostText(options.host)}:${port}`;
  const self = { pid: process.pid, url: url(options.port) };
  let runtime: Runtime | undefined;
  let lose: (error: unknown) => void = () => undefined;
  const lost = new Promise<never>((_, reject) => {
    lose = reject;
  });
  lost.catch(() => undefined);
  // First: one that is there may be about to mend its sockets.
  await refuseServed(folder);
  const door = await openDoor(folder.door, folder.path, self, (request) => answer(request, runtime, log), lose);
  try {
    const file = configOf(folder);
    await endLeftBehind(folder, (left) =>
      log.warn(`ending workerd ${left}, which a serve that was killed left behind`),
    );
    const warnings = workers.flatMap((worker) => worker.warnings);
    warnings.push(...openFilesWarning(), ...(cluster ? clusterWarning(version) : []));
    for (const warning of warnings) log.warn(warning);
    const built: BuiltWorker[] = [];
    for (const [at, worker] of workers.entries()) {
      const modules = await modulesOf(worker, folder.run, `worker-${at}`, at === 0);
      const own = { ...variables.shared, ...(at === 0 && variables.queue) };
      built.push({ worker, modules, variables: Object.keys(own) });
    }
    const networks = [...options.allowNetwork, ...(variables.queue.ALLOW_LOCALHOST === 'true' ? ['local'] : [])];
    const config = configText({
      ...{ workers: built, objects: folder.objects, networks, authorities: authorities(terminal) },
      ...{ address: `${hostText(options.host)}:${options.port}`, inner: folder.inner, tls, cluster },
      behindProxy: options.behindProxy,
    });
    writeFileSync(file, config, { mode: 0o600 });
    let isAnnounced = false;
    const announce = (port: number) => {
      if (isAnnounced) return;
      isAnnounced = true;
      const address = url(port);
      const access = keys === 0 ? 'no key' : keys === 1 ? 'one key' : `${keys} keys`;
      const dashboard = `${address}/ojs/ui`;
      const kept = cluster ? `${cluster.bucket} (experimental)` : folder.path;
      const message = `serving ${address}, dashboard ${dashboard}, state ${kept}, ${access}`;
      const names = workers.map(({ name }) => name);
      const facts = { url: address, dashboard, state: folder.path, ...(cluster && { cluster: cluster.bucket }) };
      log.info(message, { ...facts, keys, workers: names, workerd: version });
      if (isOpen) log.warn('no key is set: every caller of this address may do everything; set API_KEYS');
    };
    runtime = new Runtime({
      ...{ binary, file, folder, log, now: terminal.now, host: hostText(options.host) },
      env: { ...environment(terminal), ...inFull(variables.runtime), ...variables.shared, ...variables.queue },
      isExperimental: cluster !== undefined,
      mayStart: door.check,
      ready: (port) => {
        void opened(folder, runtime as Runtime).then(() => {
          announce(port);
          // What the code declares takes effect, although no one has called yet.
          void runtime?.ask('/wake', START_MS).then((found) => {
            if (typeof found?.problem === 'string') log.error(`every request is refused: ${found.problem}`);
          });
        }, lose);
      },
    });
    await Promise.race([untilEnded(runtime, log, options.grace, cluster ? HAND_OVER_MS : CLOSE_MS), lost]);
  } finally {
    runtime?.killNow();
    door.close();
  }
}

const START_MS = 10_000;

/** @throws {CliError} where the state is newer than what the Worker can open */
async function opened(folder: StateFolder, runtime: Runtime): Promise<void> {
  const { schemas = {} } = ((await runtime.ask('/schemas', START_MS)) ?? {}) as { schemas?: Schemas };
  noteSchemas(folder, schemas);
}

/** Runs it until a signal, then lets what runs come to its end. A second signal waits for nothing. */
async function untilEnded(runtime: Runtime, log: Log, graceMs: number, closeMs: number): Promise<void> {
  const atExit = () => runtime.killNow();
  process.on('exit', atExit);
  let notify: (signal: NodeJS.Signals) => void = () => undefined;
  const signalled = new Promise<NodeJS.Signals>((resolve) => {
    notify = resolve;
  });
  const hurry = new AbortController();
  let signals = 0;
  const listener = (signal: NodeJS.Signals) => {
    if (++signals > 1) hurry.abort();
    notify(signal);
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, listener);
  const started = runtime.start();
  const signal = await Promise.race([signalled, started.then(() => signalled)]);
  const calls = await rest(runtime);
  const running = calls ?? 'an unknown number';
  log.info(`${signal}: no more jobs are handed out; calls to handlers that run: ${running}`, { grace_ms: graceMs });
  const left = calls === 0 ? 0 : await settled(runtime, graceMs, hurry.signal);
  if (left === undefined) log.warn('the queue does not say what runs');
  else if (left > 0)
    log.warn(`calls to handlers that are cut off: ${left}; their jobs run again when their leases end`);
  await runtime.end(hurry.signal.aborted ? 0 : closeMs);
  await started.catch(() => undefined);
  log.info('ended');
  process.off('exit', atExit);
}

/** Hands out no jobs for a while. @returns calls to handlers that are under way; undefined: unknown */
async function rest(runtime: Runtime): Promise<number | undefined> {
  const answer = await runtime.ask(`/rest?ms=${REST_MS}`, REST_MS);
  return answer && Number(answer.calls);
}

/** Waits until no call to a handler is under way. @returns how many are when time is over; undefined: unknown */
async function settled(runtime: Runtime, graceMs: number, hurry: AbortSignal): Promise<number | undefined> {
  const end = performance.now() + graceMs;
  for (;;) {
    const calls = await rest(runtime);
    if (!calls || hurry.aborted || performance.now() >= end) return calls;
    await pause(LOOK_MS, undefined, { signal: hurry }).catch(() => undefined);
  }
}

async function answer(request: string, runtime: Runtime | undefined, log: Log) {
  if (!runtime) throw new CliError('It is just starting; try again.');
  const [, known] = /^release (\d+)$/.exec(request) ?? [];
  // What was asked for before ends with this answer.
  if (known !== undefined) return { answer: { held: runtime.isHeld(Number(known)) } };
  if (request !== 'hold') throw new CliError(`This version does not know "${request}".`);
  const id = await runtime.hold();
  const since = performance.now();
  let isReleased = false;
  const release = (why: string) => {
    if (isReleased) return;
    isReleased = true;
    clearTimeout(timer);
    runtime.release();
    const ms = Math.round(performance.now() - since);
    log.info(`a backup held up all writes for ${ms} ms${why}`, { held_ms: ms });
  };
  const timer = setTimeout(() => release(', which is the longest that it may'), HOLD_MS);
  return { answer: { id, within_ms: HOLD_MS }, ended: () => release('') };
}

/** @throws {CliError} where a Worker is written for a newer runtime */
function checkDates(workers: readonly ServedWorker[], version: string, newestDate: string): void {
  const newer = workers.find(({ date }) => date > newestDate);
  if (!newer) return;
  const { name, date } = newer;
  const message = `${name} has the compatibility date ${date}; workerd ${version} knows those up to ${newestDate}.`;
  throw new CliError(message, 'npm install workerd@1 brings the newest.');
}

const SET_KEYS = 'Set API_KEYS in the environment, or in the file of --env-file.';

/** The data lies where this program keeps it. @throws {CliError} for any place of Cloudflare's */
function refusePlace(location: unknown = ''): void {
  if (location === '') return;
  const hint = 'Leave it empty: the data is in the folder of --state, or in the bucket of --cluster.';
  throw usageError(`DATA_LOCATION=${location}: only Cloudflare can keep data in a place.`, hint);
}

/** Without a key only this machine is served, and only at a loopback address. */
function openLoopback(queue: Record<string, string>, { host, behindProxy }: ServeOptions): void {
  const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host);
  const danger = behindProxy
    ? 'every client of the proxy could do everything'
    : `${host} would be open to everybody who reaches it`;
  if (behindProxy || !isLoopback) throw new CliError(`No key is set, so ${danger}.`, SET_KEYS, 'no_key');
  queue.ALLOW_LOCALHOST ??= 'true';
}

function tlsOf({ tlsCert, tlsKey }: ServeOptions): { certificate: string; key: string } | undefined {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) throw usageError('--tls-cert and --tls-key belong together.');
  const [certificate, key] = [resolve(tlsCert), resolve(tlsKey)];
  const chain = parsed(certificate, 'a certificate', (pem) => new X509Certificate(pem));
  const secret = parsed(key, 'a private key without a passphrase', createPrivateKey);
  if (!chain.checkPrivateKey(secret)) {
    throw new CliError(`The key ${key} does not belong to the first certificate in ${certificate}.`, PEM_HINT);
  }
  return { certificate, key };
}

const PEM_HINT = 'Pass --tls-cert a PEM file with the certificate of this server first, and --tls-key its key in PEM.';

/** What a PEM file holds. @throws {CliError} when it is something else */
function parsed<T>(file: string, what: string, parse: (pem: string) => T): T {
  const pem = readText(file);
  try {
    return parse(pem);
  } catch {
    throw new CliError(`${file} is not ${what} in PEM.`, PEM_HINT);
  }
}

/** Node knows the public authorities, so that nothing depends on what the system has installed. */
function authorities({ env }: Terminal): string[] {
  const more = env.NODE_EXTRA_CA_CERTS ? readText(env.NODE_EXTRA_CA_CERTS) : '';
  const found = more.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return [...rootCertificates, ...found];
}

/** What the runtime itself needs of the environment. */
function environment({ env }: Terminal): Record<string, string> {
  const names = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'SystemRoot', 'TMPDIR'];
  const given = names.flatMap((name) => (own(env, name) === undefined ? [] : [[name, own(env, name)]]));
  return inFull(Object.fromEntries(given) as Record<string, string>);
}

/** Paths as they are from the folder where the runtime starts. */
function inFull(variables: Readonly<Record<string, string>>): Record<string, string> {
  const isPath = (name: string) => /_(FILE|DIR)$/.test(name);
  return Object.fromEntries(Object.entries(variables).map(([name, is]) => [name, isPath(name) ? resolve(is) : is]));
}

const hostText = (host: string) => (isIP(host) === 6 ? `[${host}]` : host);

/** Open files of a queue that is in use: its database, the log of that, and their index. */
const PER_QUEUE = 3;
/** Fewer than this end the runtime under ordinary load. */
const ENOUGH = 4_096;

/** What to warn of; none: there are enough, or the limit is not known. */
function openFilesWarning(): string[] {
  const limit = openFileLimit();
  if (limit === undefined || Number.isNaN(limit) || limit >= ENOUGH) return [];
  return [
    `the limit of open files is ${limit}; each queue in use takes ${PER_QUEUE} and each connection one, and the runtime ends when none is left: raise the limit to at least ${ENOUGH} (LimitNOFILE in systemd, ulimit -n in a shell)`,
  ];
}

/** NaN: there is no limit. */
function openFileLimit(): number | undefined {
  try {
    if (process.platform === 'win32') return undefined;
    if (process.platform !== 'linux') return Number(execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }));
    return Number(/^Max open files\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}
