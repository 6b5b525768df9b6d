/** Looks whether everything is in its place: the project in a folder, and the queue that answers. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import type { TocsinClient } from '../client/client';
import type { QueueOverview } from '../client/queue-config';
import type { Deployment } from '../client/server';
import type { TargetStatus } from '../client/targets';
import { parseDuration } from '../job/duration';
import { defined } from '../job/envelope/fields';
import { own } from '../job/own';
import { TocsinError, UnauthorizedError } from '../producer/errors';
import { CliError, type Endpoint, failureOf, orNone } from './failure';
import { lengthText, shellWord } from './output';
import { builtBy, FRAMEWORKS_PAGE } from './project/frameworks';
import { adaptModule } from './project/main-module';
import { OBJECT_CLASSES } from './project/toolchain';
import { findWrangler, installedVersion, type Wrangler } from './project/wrangler';
import {
  environmentsOf,
  findConfig,
  mainsOf,
  nameOf,
  needsOf,
  partsOf,
  valuesIn,
  type WranglerConfig,
} from './project/wrangler-config';
import { countKeys, hasLogin, misspelt } from './serve/variables';
import { settingsLines } from './settings';

export interface Check {
  name: string;
  /** `warn`: it works, but not all of it; `fail`: it does not work. */
  status: 'ok' | 'warn' | 'fail';
  message: string;
  hint?: string;
}

const check =
  (status: Check['status']) =>
  (name: string, message: string, hint?: string): Check =>
    defined({ name, status, message, hint });
export const [ok, warned, failed] = [check('ok'), check('warn'), check('fail')];

/** Share of the bound from which the queue deletes ended jobs early: see docs/operate/queues.md. */
const PRUNING = 0.8;
/** Below this many jobs, the tables of an empty database decide about the bytes of each. */
const MIN_JOBS = 1_000;
/** Queues that are looked at: one page of the list. */
const MAX_QUEUES = 200;
const MINUTE_MS = 60_000;

const STORAGE_PAGE = 'docs/operate/capacity.md';

/** How long ended jobs can stay at the present rate; undefined: always, or too few are stored to tell. */
function capacityOf({ storage, counts, throughput }: QueueOverview) {
  const jobs = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const perMinute = throughput.processedPerMinute + throughput.failedPerMinute;
  if (!storage || jobs < MIN_JOBS || perMinute === 0) return undefined;
  const bytesPerJob = storage.bytes / jobs;
  return { bytesPerJob, perMinute, staysMs: ((PRUNING * storage.maxBytes) / (bytesPerJob * perMinute)) * MINUTE_MS };
}

/** A check of each queue that is full, or deletes completed jobs before their retention ends at the present rate. */
async function capacityChecks(tocsin: TocsinClient): Promise<Check[]> {
  const checks: Check[] = [];
  let fullest = { name: '', share: 0, of: 0 };
  let looked = 0;
  for await (const queue of tocsin.queues.overview({ limit: MAX_QUEUES })) {
    if (++looked > MAX_QUEUES) break;
    const { name, storage } = queue;
    if (!storage) continue;
    const share = storage.bytes / storage.maxBytes;
    if (share > fullest.share) fullest = { name, share, of: storage.maxBytes };
    const warning = (message: string, hint: string) => checks.push(warned('storage', message, hint));
    if (storage.state === 'full') {
      warning(`${name} is full and rejects new jobs.`, `tocsin queues purge ${shellWord(name)} --state completed`);
      continue;
    }
    const found = capacityOf(queue);
    if (!found) continue;
    const config = await orNone(tocsin.queues.config(name), undefined);
    const wanted = parseDuration(config?.effective.retention?.completed);
    if (wanted === undefined || wanted <= found.staysMs) continue;
    const load = `${Math.ceil(found.perMinute / 60)} jobs/s of ${Math.round(found.bytesPerJob)} bytes`;
    const message = `${name}: ended jobs stay about ${lengthText(found.staysMs)}, not ${lengthText(wanted)}: ${load}.`;
    warning(message, `Shorten the retention, or use several queues: ${STORAGE_PAGE}`);
  }
  if (checks.length > 0 || fullest.name === '') return checks;
  const { name, share, of } = fullest;
  return [ok('storage', `the fullest queue, ${name}, uses ${percent(share)} of ${gigabytes(of)}`)];
}

const percent = (share: number) => (share < 0.01 ? 'less than 1 %' : `${Math.round(100 * share)} %`);
const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;

const ADD = 'Add what is missing with: npx tocsin init';

/** The project in a folder. @returns nothing when there is none */
export function projectChecks(folder: string): Check[] {
  let config: WranglerConfig | undefined;
  try {
    config = findConfig(folder);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return [failed('configuration', error.message, error.hint)];
  }
  if (config === undefined) return [];
  const wrangler = findWrangler(folder);
  const ignored = join(folder, '.gitignore');
  const gitignore = existsSync(ignored) ? readFileSync(ignored, 'utf8') : '';
  const built = mainsOf(config).find((main) => builtBy(main, gitignore) !== undefined);
  if (built !== undefined) {
    const message = `${built} is written by ${builtBy(built, gitignore)}: this Worker cannot hold the queue.`;
    return [warned('main module', message, `Bind a Worker that holds it: ${FRAMEWORKS_PAGE}`), wranglerCheck(wrangler)];
  }
  return [
    ...configChecks(config),
    ...partsOf(config).map((env) => dateCheck(config, env, wrangler)),
    wranglerCheck(wrangler),
    ...variableChecks(config, folder),
    ...mainsOf(config).map((main) => mainCheck(folder, config.file, main)),
    packageCheck(folder),
  ];
}

function configChecks(config: WranglerConfig): Check[] {
  const checks = partsOf(config).flatMap((env) => partChecks(config, env));
  const environments = environmentsOf(config).map(([name]) => `env.${name}`);
  const also = environments.length > 0 ? `, also in ${environments.join(', ')}` : '';
  if (checks.length === 0)
    checks.push(ok('configuration', `${config.file}: ${OBJECT_CLASSES.length} classes, no bindings needed${also}`));
  return [...checks, ...environmentsOf(config).flatMap(([name, own]) => bindingChecks(config, name, own))];
}

function partChecks(config: WranglerConfig, env: string | undefined): Check[] {
  const { classes, withoutSqlite, flags } = needsOf(config, env);
  const checks: Check[] = [];
  const name = nameOf(config, env);
  const lacking = `${name} has no migration and no entry in exports for ${classes.join(', ')}.`;
  if (classes.length > 0) checks.push(failed('migrations', lacking, ADD));
  if (withoutSqlite.length > 0) {
    const of = env === undefined ? '' : ` in env.${env}`;
    const message = `${withoutSqlite.join(', ')} was created without SQLite${of}; the queue needs new_sqlite_classes, or the storage sqlite in exports.`;
    checks.push(failed('migrations', message, 'A deployed class cannot be changed: delete it and create it again.'));
  }
  for (const { flag, since, why, vital } of flags) {
    const message = `${name} needs the flag ${flag}, so that ${why}: its compatibility date is before ${since}.`;
    checks.push((vital ? failed : warned)('compatibility', message, ADD));
  }
  return checks;
}

/** Bindings that an environment does not inherit from the top level; handlers and settings may be among them. */
function bindingChecks({ file, values }: WranglerConfig, env: string, section: Record<string, unknown>): Check[] {
  const top: Record<string, unknown> = values;
  const lacking = ['vars', 'services', 'durable_objects'].filter(
    (name) => own(top, name) !== undefined && !(name in section),
  );
  if (lacking.length === 0) return [];
  const message = `env.${env} of ${file} has no ${lacking.join(' and no ')}: an environment does not inherit those of the top level.`;
  return [warned('environment', message, 'Repeat there what the queue and its handlers need.')];
}

/** Variables in the configuration, and in the files that wrangler reads in development. */
function variableChecks(config: WranglerConfig, folder: string): Check[] {
  const sources = partsOf(config).map(
    (env) => [nameOf(config, env), (valuesIn(config, env) as { vars?: unknown }).vars] as const,
  );
  const files = ['.dev.vars', '.env'].filter((name) => existsSync(join(folder, name)));
  const local = files.map((name) => [name, parseEnv(readFileSync(join(folder, name), 'utf8'))] as const);
  return [...sources, ...local].flatMap(([source, values]) => {
    if (typeof values !== 'object' || values === null) return [];
    const warnings = misspelt(Object.keys(values)).map((text) => warned('variables', `${source}: ${text}`));
    return [...warnings, ...valueChecks(source, values as Record<string, unknown>)];
  });
}

/** Values that the queue would refuse. A secret that is not among them stands elsewhere. */
function valueChecks(source: string, { API_KEYS, LOGIN, LOGIN_SECRET }: Record<string, unknown>): Check[] {
  return [() => countKeys(API_KEYS), () => hasLogin(LOGIN, LOGIN_SECRET ?? null)].flatMap((read) => {
    try {
      read();
      return [];
    } catch (error) {
      const { message, hint } = failureOf(error);
      return [failed('variables', `${source}: ${message}`, hint)];
    }
  });
}

function dateCheck(config: WranglerConfig, env: string | undefined, wrangler: Wrangler | undefined): Check {
  const date = valuesIn(config, env).compatibility_date;
  const file = nameOf(config, env);
  // TOML has dates of its own, which wrangler does not take.
  if (typeof date !== 'string') return failed('compatibility', `${file} has no compatibility_date.`);
  const newest = wrangler?.newestDate;
  if (newest === undefined || date <= newest)
    return ok('compatibility', `${date}${newest ? `, wrangler supports up to ${newest}` : ''}`);
  const message = `${date} is newer than the installed wrangler ${wrangler?.version} supports: ${newest}.`;
  return failed('compatibility', message, `Use ${newest}, or install a newer wrangler.`);
}

function wranglerCheck(wrangler: Wrangler | undefined): Check {
  if (!wrangler) return failed('wrangler', 'wrangler is not installed here.', 'npm install --save-dev wrangler');
  return ok('wrangler', `${wrangler.version}, needs Node ${wrangler.node}`);
}

function mainCheck(folder: string, file: string, main: unknown): Check {
  if (typeof main !== 'string') return failed('main module', `${file} has no main module.`);
  const path = join(folder, main);
  if (!existsSync(path)) return warned('main module', `${main} does not exist. Does a build create it?`);
  const adapted = adaptModule(readFileSync(path, 'utf8'), main, './tocsin');
  if (adapted.kind === 'complete') return ok('main module', `${main} exports the queue`);
  if (adapted.kind === 'changed') return failed('main module', `${main} is not complete.`, ADD);
  return warned('main module', `${main}: ${adapted.why}.`, 'Print the lines to add with: npx tocsin init');
}

function packageCheck(folder: string): Check {
  const version = installedVersion(folder, 'tocsin');
  return version === undefined
    ? failed('package', 'tocsin is not installed here.', 'npm install tocsin')
    : ok('package', `tocsin ${version}`);
}

/** The queue at an address. @param version of this program */
export async function serverChecks(tocsin: TocsinClient, endpoint: Endpoint, version: string): Promise<Check[]> {
  const { url } = endpoint;
  // Before anything else is asked: any request puts it into effect.
  const found = await deploymentAt(tocsin);
  let server: string;
  try {
    const health = await tocsin.server.health();
    server = health.version;
    if (health.status !== 'ok') {
      // A server of an earlier version gives no reason.
      const { reason }: { reason?: { message: string } } = health.backend;
      const why = reason?.message ?? 'It cannot reach its objects.';
      return [failed('server', `${url} answers, but is not well. ${why}`)];
    }
  } catch (error) {
    if (!(error instanceof TocsinError)) throw error;
    const { message, hint } = failureOf(error, endpoint);
    return [failed('server', message, hint)];
  }
  const checks = [ok('server', url), versionCheck(server, version), ...(await keyChecks(tocsin, endpoint))];
  if (checks.some(({ name, status }) => name === 'key' && status !== 'ok')) return checks;
  return [
    ...checks,
    ...settingsChecks(found, await deploymentAt(tocsin)),
    ...(await targetChecks(tocsin)),
    ...(await capacityChecks(tocsin)),
  ];
}

/** What the code declares; nothing at a server that does not say, or not to this key. */
async function deploymentAt(tocsin: TocsinClient): Promise<Deployment | undefined> {
  try {
    return await tocsin.server.deployment();
  } catch (error) {
    if (error instanceof TocsinError) return undefined;
    throw error;
  }
}

/** What the code declares, and whether it holds. @param found before anything else was asked @param now after that */
function settingsChecks(found: Deployment | undefined, now: Deployment | undefined): Check[] {
  if (!now) return [];
  const lines = settingsLines(now).map(({ name, message }) => ok(name, message));
  if (!now.inEffect) {
    const problems = now.problems?.length ? now.problems.map((problem) => `: ${problem}`) : ['.'];
    const warnings = problems.map((why) => `What the code declares is not in effect${why}`);
    return [...lines, ...warnings.map((message) => warned('settings', message, 'Try again with: npx tocsin apply'))];
  }
  if (found?.inEffect !== false) return lines;
  const message = 'What the code declares took effect only with this check: no request has come since the deploy.';
  const hint = 'Deploy with "npx tocsin deploy", or run "npx tocsin apply" after a deploy.';
  return [...lines, warned('settings', message, hint)];
}

/** The handlers in the Worker of the queue, as a target; what they take is among the settings. */
const OWN_TARGET = 'handlers';

/** The handlers that jobs are pushed to; nothing at a server that does not say. */
async function targetChecks(tocsin: TocsinClient): Promise<Check[]> {
  const targets = await orNone(tocsin.targets.list(), []);
  return targets.filter(({ name, state }) => name !== OWN_TARGET || state !== 'up').map(targetCheck);
}

function targetCheck({ name, state, types, patterns, lastError }: TargetStatus): Check {
  const takes = types ? types.join(', ') : `${patterns.join(', ')} (its job types are not known yet)`;
  if (state === 'up') return ok('target', `${name}: ${takes}`);
  const message = `${name} is ${state}: ${lastError ?? 'it does not accept calls'}`;
  return warned('target', message, `Start or deploy it, then run: tocsin targets resume ${shellWord(name)}`);
}

/** Versions that differ in more than the last number may not know each other's commands. */
function versionCheck(server: string, own: string): Check {
  const line = (version: string) => version.split('.').slice(0, 2).join('.');
  if (line(server) === line(own)) return ok('version', `server ${server}, this program ${own}`);
  const message = `The server has ${server}, this program is ${own}.`;
  return warned('version', message, `npx tocsin@${line(server)} matches the server.`);
}

async function keyChecks(tocsin: TocsinClient, endpoint: Endpoint): Promise<Check[]> {
  const looks = [
    ['data:read', () => tocsin.count({ queue: 'default', state: 'active' })],
    ['admin:read', () => tocsin.queues.overview({ limit: 1 }).next()],
  ] as const;
  const missing: string[] = [];
  for (const [scope, look] of looks) {
    try {
      await look();
    } catch (error) {
      const isWrong = error instanceof TocsinError && error.code === 'invalid_configuration';
      if (!isWrong && !(error instanceof UnauthorizedError)) throw error;
      const { message, hint } = failureOf(error, endpoint);
      if (error.status !== 403) return [failed('key', message, hint)];
      missing.push(scope);
    }
  }
  if (missing.length === 0) return [ok('key', 'may read jobs and queues')];
  const hint = 'Some commands need more: see docs/start/deploy.md.';
  return [warned('key', `This key lacks ${missing.join(' and ')}.`, hint)];
}
