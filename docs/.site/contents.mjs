/** What the site has, in the order in which it is read: the sections of docs/README.md, the API, the project. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiPages } from './api.mjs';
import { pageOf, resolveLink, root } from './links.mjs';

const INDEX = 'docs/README.md';

/** An item of a section: a link, a colon and what the page is about, perhaps over several lines. */
const ITEM = /^- \[[^\]]*\]\(([^)\s]+)\): ((?:.|\n {2})*)/;

const PROJECT = [
  ['README.md', 'what Tocsin is, how to try it and how to install it.'],
  [INDEX, 'the contents of the docs.'],
  ['CHANGELOG.md', 'what each version changes.'],
  ['.github/CONTRIBUTING.md', 'how to run, test and change the project.'],
  ['.github/SECURITY.md', 'how to report a vulnerability.'],
  ['LICENSE', 'MIT.', 'Licence'],
];

/** The title and the first paragraph of docs/README.md. */
export function about() {
  const [heading, summary] = read(INDEX).split('\n\n');
  return { title: 'Tocsin', heading: heading.replace('# ', ''), summary: summary.replace(/\s+/g, ' ') };
}

/**
 * The pages by section.
 * @param {object} document OpenAPI 3.1
 * @returns {{ documents: Section[], api: Section, project: Section }}
 * @typedef {{ text: string, items: { title: string, address: string, file: string, about: string }[] }} Section
 */
export function contents(document) {
  const [, ...sections] = read(INDEX).split(/^## /m);
  return {
    documents: sections.map((section) => ({
      text: section.split('\n', 1)[0],
      items: (section.match(/^- .*(?:\n {2}.*)*/gm) ?? []).map(itemOf),
    })),
    api: {
      text: 'The API',
      items: apiPages(document).map(({ path, text, about }) => ({
        title: titleOf(text),
        address: `/${path.replace(/(index)?\.md$/, '')}`,
        file: path,
        about,
      })),
    },
    project: { text: 'The project', items: PROJECT.map(([path, about, title]) => pageItem(path, about, title)) },
  };
}

function itemOf(written) {
  const [, href, about] = ITEM.exec(written) ?? [];
  const path = href && resolveLink(INDEX, href)?.path;
  if (!path) throw new Error(`${INDEX}: not a link to a page, a colon and what it is about: ${written}`);
  return pageItem(path, about.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/\s+/g, ' '));
}

function pageItem(path, about, title = titleOf(read(path))) {
  return { title, ...pageOf(path), about };
}

const read = (path) => readFileSync(join(root, path), 'utf8');
const titleOf = (text) => /^# (.*)$/m.exec(text)[1].replaceAll('`', '');
