/**
 * The servers that the dashboard is tested against: one workerd, with an open queue at one port, one that asks for keys at another
 * and one whose people log in at an identity provider. They are made once for all files of tests.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { writeBuilt } from '../../../.ci/ui.mjs';
import { bundle, classes, freePort } from '../../crash/server.mjs';
import { loginAt, startIssuer } from './issuer.mjs';

const workerd = createRequire(import.meta.url)('workerd').default;

/** Keys of the server that asks for them, by role. */
export const KEYS = { viewer: 'viewer-key', operator: 'operator-key', admin: 'admin-key' };

const API_KEYS = Object.entries(KEYS).map(([role, key]) => ({ key, role, name: `${role} of tests` }));

const text = (value) => JSON.stringify(value);

/** What runs in the handler Worker, unless a caller says otherwise. */
const WORK = { handlers: { 'work.*': 'HANDLER' }, entry: 'test/browser/support/handler.ts' };

const queue = (name, handlers, bindings) => `const ${name} :Workerd.Worker = (
  modules = [(name = "queue.js", esModule = embed "queue.js")],
  compatibilityDate = "2026-05-03",
  bindings = [
    (name = "HANDLER", service = "handler"),
    (name = "HANDLERS", json = ${text(text(handlers))}),
    ${bindings}
  ],
  durableObjectNamespaces = [
    ${classes()
      .map((className) => `(className = "${className}", uniqueKey = "${name}-${className}", enableSql = true),`)
      .join('\n    ')}
  ],
  durableObjectStorage = (localDisk = "state"),
);`;

/** Variables with which a queue makes URLs for people. */
const signalUrls = (port) =>
  `(name = "TOKEN_SECRET", text = "${'browser-tests-'.repeat(3)}"), (name = "PUBLIC_URL", text = "http://127.0.0.1:${port}"),`;

const LOGIN_SECRET = 'login-secret-of-tests';

const login = (issuer) =>
  `(name = "LOGIN", json = ${text(text(loginAt(issuer)))}), (name = "LOGIN_SECRET", text = "${LOGIN_SECRET}"),`;

const configuration = ({ open, closed, people }, issuer, handlers) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "open", worker = .open),
    (name = "closed", worker = .closed),
    (name = "people", worker = .people),
    (name = "handler", worker = .handler),
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
    (name = "state", disk = (path = "state", writable = true)),
  ],
  sockets = [
    (name = "open", address = "127.0.0.1:${open}", http = (), service = "open"),
    (name = "closed", address = "127.0.0.1:${closed}", http = (), service = "closed"),
    (name = "people", address = "127.0.0.1:${people}", http = (), service = "people"),
  ],
);
${queue('open', handlers, `(name = "ALLOW_LOCALHOST", text = "true"), (name = "TEST_HOOKS", text = "true"), ${signalUrls(open)}`)}
${queue('closed', handlers, `(name = "API_KEYS", text = ${text(text(API_KEYS))}), (name = "REDACT", text = "password"), (name = "TEST_HOOKS", text = "true"),`)}
${queue('people', handlers, `(name = "API_KEYS", text = ${text(text(API_KEYS))}), ${login(issuer)} ${signalUrls(people)}`)}
const handler :Workerd.Worker = (
  modules = [(name = "handler.js", esModule = embed "handler.js")],
  compatibilityDate = "2026-05-03",
);
`;

/**
 * @param {{ handlers: Record<string, string>, entry: string }} [work] which types run in the handler Worker, and its module
 * @returns {Promise<{ open: string, closed: string, people: string, stop: () => Promise<void> }>} base URLs
 */
export async function startServers({ handlers, entry } = WORK) {
  await writeBuilt();
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-browser-'));
  mkdirSync(join(folder, 'state'));
  bundle('src/index.ts', join(folder, 'queue.js'));
  bundle(entry, join(folder, 'handler.js'));
  const [open, closed, people] = [await freePort(), await freePort(), await freePort()];
  const issuer = await startIssuer(await freePort(), LOGIN_SECRET);
  writeFileSync(join(folder, 'config.capnp'), configuration({ open, closed, people }, issuer.url, handlers));
  const child = spawn(workerd, ['serve', join(folder, 'config.capnp')], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      log = (log + chunk).slice(-8_000);
    });
  }
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const url = (port) => `http://127.0.0.1:${port}`;
  for (let tries = 0; ; tries++) {
    const answer = await fetch(`${url(open)}/ojs/v1/health`).catch(() => undefined);
    if (answer?.ok) break;
    if (child.exitCode !== null || tries > 200) throw new Error(`The server did not start:\n${log}`);
    await delay(50);
  }
  return {
    open: url(open),
    closed: url(closed),
    people: url(people),
    stop: async () => {
      process.off('exit', kill);
      kill();
      await Promise.all([ended, issuer.stop()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
