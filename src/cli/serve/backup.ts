/** Backups of a state folder, consistent as after a power cut: workerd is stopped only for what changed meanwhile. */
import { createHash } from 'node:crypto';
import { constants, createReadStream, existsSync, type Stats } from 'node:fs';
import {
  chmod,
  copyFile,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { version } from '../../../package.json';
import { isObject, parseObject } from '../../job/envelope/fields';
import { CliError, makeFolder, notWritten } from '../failure';
import { openDoor } from './door';
import {
  FORMAT,
  isEmpty,
  isSchemas,
  knownFolder,
  noteSchemas,
  openFolder,
  type Schemas,
  type StateFolder,
  schemasOf,
} from './folder';
import { leftBehind } from './left-behind';
import { type Door, knock } from './local-socket';

/** The list of the files of a backup. It is written last: without it a backup is not whole. */
const LIST = 'backup.json';

/** A file that was changed within this time before its copy may change again without looking newer, ms. */
const UNSURE_MS = 2_000;

interface List {
  format: number;
  tocsin: string;
  taken_at: string;
  schemas?: Schemas;
  /** By path below `objects`: bytes and SHA-256. */
  files: Record<string, [bytes: number, hash: string]>;
}

export interface Copied {
  folder: string;
  files: number;
  bytes: number;
}

/** Copies the databases into an empty or new `target`. @returns `heldMs`: writes were blocked; absent: nothing ran */
export async function backUp(state: string, target: string, now: () => number): Promise<Copied & { heldMs?: number }> {
  const folder = knownFolder(state);
  const whole = resolve(target);
  if (!isEmpty(whole)) throw new CliError(`${whole} is not empty.`, 'Name a folder that does not exist.');
  // What lies in `objects` would be in the next backup, and `run` is not kept.
  if ([folder.objects, folder.run].some((own) => `${whole}${sep}`.startsWith(`${own}${sep}`))) {
    throw new CliError(`${whole} is in the state folder itself.`, 'Name a folder outside, best on another disk.');
  }
  const part = join(dirname(whole), `.${basename(whole)}.part-${process.pid}`);
  makeFolder(join(part, 'objects'), 0o700);
  try {
    const door = await knock(folder.door);
    const held = door ? await copyRunning(folder, part, door, now) : await copyResting(folder, part, now);
    const files = await listFiles(join(part, 'objects'));
    const list: List = {
      format: FORMAT,
      tocsin: version,
      taken_at: new Date(held.at).toISOString(),
      schemas: schemasOf(folder),
      files: {},
    };
    for (const [path, { size }] of files) list.files[path] = [size, await keep(join(part, 'objects', path))];
    await writeFile(join(part, LIST), `${JSON.stringify(list)}\n`, { mode: 0o600 });
    await keep(join(part, LIST));
    await rm(whole, { recursive: true, force: true });
    await rename(part, whole);
    return { folder: whole, ...sum(list), ...(held.ms !== undefined && { heldMs: held.ms }) };
  } catch (error) {
    await rm(part, { recursive: true, force: true });
    throw notWritten(whole, error);
  }
}

/** Copies back into a state folder that is new. @throws {CliError} where the backup is not what was written */
export async function restore(backup: string, state: string): Promise<Copied> {
  const from = resolve(backup);
  if (!existsSync(join(from, LIST))) throw new CliError(`${from} is not a whole backup: it has no ${LIST}.`);
  const list = readList(join(from, LIST), await readFile(join(from, LIST), 'utf8'));
  for (const [path, [bytes, hash]] of Object.entries(list.files)) {
    const file = join(from, 'objects', path);
    if (!existsSync(file)) throw new CliError(`${file} is missing: nothing was restored.`);
    if ((await stat(file)).size !== bytes || (await hashOf(file)) !== hash) {
      throw new CliError(`${file} is not what was backed up: nothing was restored.`);
    }
  }
  if (existsSync(resolve(state)) && !isEmpty(state)) {
    throw new CliError(`${resolve(state)} is not empty.`, 'Restore into a folder that does not exist.');
  }
  const folder = openFolder(state);
  const door = await openDoor(folder.door, folder.path, { pid: process.pid }, refuse);
  try {
    if (list.schemas) noteSchemas(folder, list.schemas);
    for (const path of Object.keys(list.files)) {
      await copyPrivately(join(from, 'objects', path), join(folder.objects, path));
      await keep(join(folder.objects, path));
    }
  } catch (error) {
    // A part of a state must not be served.
    await rm(folder.path, { recursive: true, force: true }).catch(() => undefined);
    throw notWritten(folder.path, error);
  } finally {
    door.close();
  }
  return { folder: folder.path, ...sum(list) };
}

/** Reads the list of a backup, whose paths must stay below the target. @throws {CliError} */
function readList(file: string, text: string): List {
  const list = (parseObject(text) ?? {}) as Partial<List>;
  const wrong = (what: string) => new CliError(`${file} ${what}: nothing was restored.`, 'Is it a whole backup?');
  if (list.format === undefined) throw wrong('is not the list of a backup');
  if (list.format !== FORMAT) {
    const message = `${file} has the form ${list.format} of tocsin ${list.tocsin}; this version knows ${FORMAT}.`;
    throw new CliError(message, 'Use the version that made it, or a newer one.');
  }
  if (!isObject(list.files)) throw wrong('lists no files');
  for (const [path, facts] of Object.entries(list.files)) {
    if (!isBelow(path)) throw wrong(`lists ${JSON.stringify(path)}, which is not a path inside of a backup`);
    const [bytes, hash] = Array.isArray(facts) ? facts : [];
    if (!Number.isSafeInteger(bytes) || typeof hash !== 'string')
      throw wrong(`does not describe ${JSON.stringify(path)}`);
  }
  const { schemas } = list;
  if (schemas !== undefined && !isSchemas(schemas)) throw wrong('does not describe the schemas of what is stored');
  return list as List;
}

/** Is this a path that leads down from any folder, on any system? */
const isBelow = (path: string): boolean =>
  !/[\0\\:]/.test(path) && path.split('/').every((name) => name !== '' && name !== '.' && name !== '..');

const refuse = () => Promise.reject(new CliError('The folder is being copied; try again.'));

/** From a folder that is served: all of it while it is, then what changed since while it stands still. */
async function copyRunning({ objects }: StateFolder, part: string, door: Door, now: () => number) {
  try {
    const before = new Map<string, Stats>();
    for (const [path, found] of await listFiles(objects)) {
      // One that is written just now is copied later anyway, and a change of shared memory does not show in its time.
      if (now() - found.mtimeMs < UNSURE_MS || path.endsWith('-shm')) continue;
      if (await copied(objects, part, path)) before.set(path, found);
    }
    const { id } = await door.ask('hold', 10_000);
    const at = now();
    const since = performance.now();
    const files = await listFiles(objects);
    for (const [path, { size, mtimeMs, ino }] of files) {
      const known = before.get(path);
      if (known && known.size === size && known.mtimeMs === mtimeMs && known.ino === ino) continue;
      await copied(objects, part, path);
    }
    const { held } = await door.ask(`release ${id}`);
    if (held !== true) throw new CliError('The copy took longer than writes may be held up: nothing was kept.');
    const ms = Math.round(performance.now() - since);
    for (const path of before.keys()) if (!files.has(path)) await rm(join(part, 'objects', path));
    return { at, ms };
  } finally {
    door.close();
  }
}

async function copyResting(folder: StateFolder, part: string, now: () => number) {
  const door = await openDoor(folder.door, folder.path, { pid: process.pid }, refuse);
  try {
    const left = leftBehind(folder);
    if (left !== undefined) {
      const message = `A workerd that was left behind (process ${left}) still writes to this folder.`;
      throw new CliError(message, 'npx tocsin serve ends it; or end it yourself.');
    }
    for (const path of (await listFiles(folder.objects)).keys()) await copied(folder.objects, part, path);
    return { at: now(), ms: undefined };
  } finally {
    door.close();
  }
}

/** @returns false where the file is gone: a database that was closed has no log */
async function copied(objects: string, part: string, path: string): Promise<boolean> {
  try {
    await copyPrivately(join(objects, path), join(part, 'objects', path));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** Copies a file so that only its user may read the copy. */
async function copyPrivately(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  await chmod(to, 0o600);
}

/**
 * All files below a folder, by relative path. Links are followed. @param above its parents' real paths
 * @throws {CliError} for what is neither a file nor a folder, and for a link that leads nowhere or in a circle
 */
async function listFiles(folder: string, above: readonly string[] = []): Promise<Map<string, Stats>> {
  const real = await realpath(folder);
  if (above.includes(real)) throw new CliError(`${folder} is a link to a folder that it is in.`, 'Remove the link.');
  const found = new Map<string, Stats>();
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name === 'lost+found') continue;
    const path = join(folder, entry.name);
    const facts = await stat(path).catch((error: NodeJS.ErrnoException) => error);
    if (facts instanceof Error) {
      // workerd deletes the log of a database that it closes.
      if (facts.code === 'ENOENT' && !entry.isSymbolicLink()) continue;
      throw new CliError(`${path} cannot be read (${facts.code}): the backup would not be whole.`, 'Mend the link.');
    }
    if (facts.isFile()) found.set(entry.name, facts);
    else if (facts.isDirectory()) {
      for (const [name, below] of await listFiles(path, [...above, real])) found.set(`${entry.name}/${name}`, below);
    } else throw new CliError(`${path} is neither a file nor a folder: the backup would not be whole.`, 'Remove it.');
  }
  return found;
}

/** Has a file written to the disk. @returns its hash */
async function keep(path: string): Promise<string> {
  const file = await open(path, 'r+');
  await file.sync();
  await file.close();
  return await hashOf(path);
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

function sum({ files }: List): { files: number; bytes: number } {
  const sizes = Object.values(files).map(([bytes]) => bytes);
  return { files: sizes.length, bytes: sizes.reduce((all, bytes) => all + bytes, 0) };
}
