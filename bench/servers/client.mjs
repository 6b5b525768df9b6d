/** The client of the library, as it is shipped. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundle } from './bundle.mjs';

/** Bundles and loads it. @returns the class `TocsinClient` */
export async function loadClient() {
  const directory = mkdtempSync(join(tmpdir(), 'tocsin-bench-'));
  try {
    const file = join(directory, 'client.mjs');
    bundle('src/client/index.ts', file);
    return (await import(pathToFileURL(file).href)).TocsinClient;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
