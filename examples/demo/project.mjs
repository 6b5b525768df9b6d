/** The files of this project, as a producer of documentation jobs sees them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const SKIPPED = new Set(['.git', '.wrangler', 'node_modules', 'dist']);

/**
 * @param {string} root
 * @returns {string[]} paths of all files below `root`, with `/` between folders, sorted
 */
export function listFiles(root, folder = '') {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (SKIPPED.has(entry.name)) return [];
      if (entry.isDirectory()) return listFiles(root, path);
      return entry.isFile() ? [path] : [];
    })
    .sort();
}

/**
 * @param {string} root
 * @param {(markdown: string) => string[]} anchorsOf
 * @returns the Markdown documents below `root`, and the anchors of every file (null: not known)
 */
export function readProject(root, anchorsOf) {
  const files = {};
  const documents = [];
  for (const path of listFiles(root)) {
    files[path] = null;
    if (!path.endsWith('.md')) continue;
    const markdown = readFileSync(join(root, path), 'utf8');
    files[path] = anchorsOf(markdown);
    documents.push({ path, markdown });
  }
  return { documents, files };
}
