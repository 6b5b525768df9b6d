import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { CliError, reasonOf } from './failure';

/**
 * Makes a folder and its parents. Not by Node's `recursive`, which never returns where a file system denies that a
 * folder to make exists, as `/proc` does. @param mode of each that is made @throws {CliError}
 */
export function makeFolder(path: string, mode?: number): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path), mode);
  try {
    mkdirSync(path, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Another process made it meanwhile.
    if (code === 'EEXIST' && existsSync(path)) return;
    const why = code === 'ENOENT' ? 'its file system takes no new folders' : reasonOf(error);
    throw new CliError(`The folder ${path} cannot be created: ${why}.`, 'Name another one.', 'not_written');
  }
}
