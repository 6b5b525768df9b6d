/**
 * The state folder of `tocsin serve`: `tocsin.json` (its format), `objects/` (the databases: keep these), and `run/`
 * (made again at each start: configuration, bundles, sockets).
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isObject } from '../../job/envelope/fields';
import { own } from '../../job/own';
import { CliError, makeFolder } from '../failure';
import { isWindows } from './local-socket';

/** Of the folder and of backups. */
export const FORMAT = 1;
const MARK = 'tocsin.json';

export interface StateFolder {
  path: string;
  objects: string;
  run: string;
  door: string;
  /** Where its Worker answers `serve`; absent where the system has no such sockets. */
  inner?: string;
  /** Has the number of the workerd that uses the databases. */
  pid: string;
  /** Has the number of the `serve` that started it. */
  parent: string;
}

/**
 * Opens or makes a state folder, readable only by its user. @param cluster the bucket that has the state
 * @throws {CliError} where it has something else in it, or the form of a newer version
 */
export function openFolder(path: string, cluster?: string): StateFolder {
  const whole = resolve(path);
  makeFolder(whole, 0o700);
  if (!statSync(whole).isDirectory()) throw new CliError(`${whole} is not a folder.`, 'Name another with --state.');
  if (!existsSync(join(whole, MARK))) {
    const [first] = readdirSync(whole).filter((name) => name !== 'lost+found');
    if (first !== undefined) {
      const message = `${whole} is not a state folder: it has ${first} in it, and no ${MARK}.`;
      throw new CliError(message, 'Name an empty folder, or one that does not exist, with --state.');
    }
    writeFileSync(join(whole, MARK), `${JSON.stringify({ format: FORMAT, cluster })}\n`);
  }
  checkMark(whole, cluster);
  const folder = partsOf(whole);
  for (const part of [folder.objects, folder.run]) makeFolder(part, 0o700);
  return folder;
}

/** The parts of a folder that is there. @throws {CliError} where it is not a state folder */
export function knownFolder(path: string): StateFolder {
  const whole = resolve(path);
  if (!existsSync(join(whole, MARK))) {
    throw new CliError(`${whole} is not a state folder of tocsin serve.`, 'Name the folder with --state.');
  }
  checkMark(whole, undefined);
  return partsOf(whole);
}

export const isEmpty = (path: string): boolean =>
  !existsSync(path) || readdirSync(path).every((name) => name === 'lost+found');

function partsOf(path: string): StateFolder {
  const run = join(path, 'run');
  return {
    path,
    objects: join(path, 'objects'),
    run,
    pid: join(run, 'workerd.pid'),
    parent: join(run, 'serve.pid'),
    door: isWindows ? pipeOf(path) : join(run, 'serve.sock'),
    ...(!isWindows && { inner: join(run, 'worker.sock') }),
  };
}

function pipeOf(path: string): string {
  const id = createHash('sha256').update(realpathSync(path)).digest('hex').slice(0, 16);
  return `\\\\.\\pipe\\tocsin-${id}-serve.sock`;
}

export type Schemas = Readonly<Record<string, number>>;

export const isSchemas = (value: unknown): value is Schemas =>
  isObject(value) && Object.values(value).every((version) => Number.isSafeInteger(version));

interface Mark {
  format?: unknown;
  /** The bucket that has the state: what lies here is the copy of one process, which may be old. */
  cluster?: string;
  /** The newest that a `serve` had here. */
  schemas?: Schemas;
}

/** The schemas of what a folder has, as far as they were noted. */
export const schemasOf = ({ path }: StateFolder): Schemas => readMark(join(path, MARK)).schemas ?? {};

/** Notes the schemas of a state. @param supported by the Worker @throws {CliError} where the folder has a newer one */
export function noteSchemas(folder: StateFolder, supported: Schemas): void {
  const file = join(folder.path, MARK);
  const mark = readMark(file);
  const { schemas = {} } = mark;
  for (const [kind, version] of Object.entries(supported)) {
    const stored = own(schemas, kind) ?? 0;
    if (stored <= version) continue;
    const message = `${folder.path} has the state of a newer version: each ${kind} is stored in version ${stored} of its schema; this version supports ${version}.`;
    throw new CliError(message, 'Start the newer version again, or restore a backup of this one.', 'newer_state');
  }
  if (Object.entries(supported).every(([kind, version]) => own(schemas, kind) === version)) return;
  writeFileSync(`${file}.new`, `${JSON.stringify({ ...mark, schemas: { ...schemas, ...supported } })}\n`);
  renameSync(`${file}.new`, file);
}

function readMark(file: string): Mark {
  try {
    const mark: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (isObject(mark) && isSchemas(mark.schemas ?? {})) return mark as Mark;
  } catch {
    // Refused below.
  }
  throw new CliError(`${file} cannot be read.`, 'It must be {"format": 1}.');
}

function checkMark(path: string, cluster: string | undefined): void {
  const found = readMark(join(path, MARK));
  if (found.format !== FORMAT) {
    const message = `${path} has the form ${String(found.format)}; this version knows ${FORMAT}.`;
    throw new CliError(message, 'Use the version of tocsin that made it, or a newer one.');
  }
  if (found.cluster === cluster) return;
  if (found.cluster !== undefined) {
    const hint = `Name that with --cluster, or another folder with --state. The bucket has the state: tocsin export takes it out.`;
    throw new CliError(`${path} belongs to the cluster ${found.cluster}.`, hint);
  }
  const hint = 'Name an empty folder with --state; tocsin export and import bring jobs into the cluster.';
  throw new CliError(`${path} has the state of a server that was in no cluster.`, hint);
}
