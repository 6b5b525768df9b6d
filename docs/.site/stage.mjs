/**
 * Lays out the pages of the site. Each document is a page as it is written; its links get their addresses when it is rendered.
 * Beside the documents there are pages for what they point at: files of the project, and the resources of the API.
 */
import { copyFileSync, globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { apiPages } from './api.mjs';
import { linksIn, pageOf, resolveLink, root } from './links.mjs';
import { forModels, markdownOf } from './markdown.mjs';

/** What the site shows as it is. */
const ASSETS = 'docs/**/*.{png,json}';

/** Of a page that is found through a link only. */
const ASIDE = 'search: false\nprev: false\nnext: false\noutline: false\n';

/** @param {string} folder that gets the pages, and the files beside them in `public`: pictures, and each page as Markdown */
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

  const markdown = new Map();
  const writePage = (file, settings, text, source) => {
    // A page may have settings of its own.
    write(file, `---\n${settings}${text.startsWith('---\n') ? text.slice(4) : `---\n\n${text}`}`);
    markdown.set(file, markdownOf(file, text, source));
    write(`public/${file}`, markdown.get(file));
  };

  const document = JSON.parse(readFileSync(join(root, 'docs/reference/openapi.json'), 'utf8'));
  for (const { path, text } of apiPages(document)) writePage(path, '', text);

  // The documents, then what they link, and what that links.
  const wanted = globSync('docs/**/*.md', { cwd: root }).sort();
  const known = new Set(wanted);
  for (const path of wanted) {
    const page = pageOf(path);
    if (page === undefined) continue;
    const text = textOf(path);
    const isDocument = path.endsWith('.md');
    // Its links are those of the file that it is made of.
    writePage(page.file, isDocument ? `source: ${path}\n` : ASIDE, text, path);
    if (!isDocument) continue;
    for (const href of linksIn(text)) {
      const linked = resolveLink(path, href)?.path;
      if (linked === undefined || known.has(linked)) continue;
      known.add(linked);
      wanted.push(linked);
    }
  }

  const { list, full } = forModels(document, (file) => markdown.get(file));
  write('public/llms.txt', list);
  write('public/llms-full.txt', full);
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

function aside(path, text) {
  return `# ${basename(path)}\n\n\`${path}\`\n\n${text}`;
}
