/** Temporary folders that are certainly gone when the benchmark ends, however it ends. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folders = new Set();

process.once('exit', () => {
  for (const folder of folders) discard(folder);
});

/** Makes a folder and answers its path. */
export function scratch(prefix = 'tocsin-load-') {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  folders.add(folder);
  return folder;
}

/** Removes a folder and what is in it. */
export function discard(folder) {
  // A process that is being killed may still write.
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  folders.delete(folder);
}
