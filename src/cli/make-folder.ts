import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { CliError, reasonOf } from './failure';

/**
 * Makes a folder and those that it is in, where they are missing. `recursive` of Node is not for this: it never returns
 * where a file system answers that a folder to make does not exist, as `/proc` does.
 * @param mode of each that is made
 * @throws {CliError} where that is not possible
 */
export function makeFolder(path: string, mode?: number): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path), mode);
  try {
    mkdirSync(path, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Somebody else made it meanwhile.
    if (code === 'EEXIST' && existsSync(path)) return;
    const why = code === 'ENOENT' ? 'its file system takes no new folders' : reasonOf(error);
    throw new CliError(`The folder ${path} cannot be created: ${why}.`, 'Name another one.', 'not_written');
  }
}
