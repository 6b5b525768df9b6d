/**
 * Lays out the pages of the site. Each document is a page as it is written; its links get their addresses when it is rendered.
 * Beside the documents there are pages for what they point at: files of the project, and the resources of the API.
 */
import { copyFileSync, globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { apiPages } from './api.mjs';
import { linksIn, pageOf, resolveLink, root } from './links.mjs';

/** What the site shows as it is. */
const ASSETS = 'docs/**/*.{png,json}';

/** @param {string} folder that gets the pages, and the files beside them in `public` */
export function stage(folder) {
  const write = (path, text) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };

  for (const asset of globSync(ASSETS, { cwd: root })) {
    const target = join(folder, 'public', asset.replace(/^docs\//, ''));
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(root, asset), target);
  }

  const api = apiPages(JSON.parse(readFileSync(join(root, 'docs/reference/openapi.json'), 'utf8')));
  for (const { path, text } of api) write(path, text);

  // The documents, then what they link, and what that links.
  const wanted = globSync('docs/**/*.md', { cwd: root }).sort();
  const known = new Set(wanted);
  for (const path of wanted) {
    const page = pageOf(path);
    if (page === undefined) continue;
    const text = textOf(path);
    // Its links are those of the file that it is made of.
    write(page.file, text.startsWith('---\n') ? text : `---\nsource: ${path}\n---\n\n${text}`);
    if (!path.endsWith('.md')) continue;
    for (const href of linksIn(text)) {
      const linked = resolveLink(path, href)?.path;
      if (linked === undefined || known.has(linked)) continue;
      known.add(linked);
      wanted.push(linked);
    }
  }
}

/** A path of the project as a page. */
function textOf(path) {
  const file = join(root, path);
  if (statSync(file).isDirectory()) {
    const entries = readdirSync(file, { withFileTypes: true });
    const names = entries.map((entry) => `- \`${entry.name}${entry.isDirectory() ? '/' : ''}\``);
    return aside(path, `${names.sort().join('\n')}\n`);
  }
  const text = readFileSync(file, 'utf8');
  if (path.endsWith('.md')) return text;
  // More backticks than any file has.
  const fence = '`'.repeat(8);
  return aside(path, `${fence}text\n${text.trimEnd()}\n${fence}\n`);
}

/** A page that is found through a link only. */
function aside(path, text) {
  const settings = 'search: false\nprev: false\nnext: false\noutline: false\n';
  return `---\n${settings}---\n\n# ${basename(path)}\n\n\`${path}\`\n\n${text}`;
}
