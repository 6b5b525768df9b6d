/** The pages as Markdown for programs: each on its own, all in one file, and a list of them as https://llmstxt.org has it. */
import { about, contents } from './contents.mjs';
import { addressOf } from './links.mjs';

/** Code, in which nothing is a link; else the target of a link, or what HTML shows. */
const CODE_OR_TARGET =
  /(?<code>^[ \t]*(?<fence>`{3,})[\s\S]*?^[ \t]*\k<fence>|`[^`]*`)|\]\((?<href>[^)\s]+)\)|\b(?<name>src|srcset)="(?<path>[^"]*)"/gm;

/**
 * A page with links that lead to Markdown, from wherever it is read.
 * @param {string} file of the site
 * @param {string} text
 * @param {string} [source] the file of the project that it is made of; the links of the site's own pages are addresses
 */
export function markdownOf(file, text, source) {
  const target = (href) =>
    markdownAt(href.startsWith('#') ? `/${file}${href}` : source ? addressOf(source, href) : href);
  return text.replace(CODE_OR_TARGET, (whole, ...found) => {
    const { href, name, path } = found.at(-1);
    if (href) return `](${target(href)})`;
    return name ? `${name}="${target(path)}"` : whole;
  });
}

/** The Markdown of the page at an address. What has a kind of file in its name stays. */
function markdownAt(address) {
  const [path, anchor] = address.split(/(?=#)/);
  if (!path.startsWith('/') || /\.\w+$/.test(path)) return address;
  return `${path.endsWith('/') ? `${path}index` : path}.md${anchor ?? ''}`;
}

/**
 * `llms.txt` and `llms-full.txt`.
 * @param {object} document OpenAPI 3.1
 * @param {(file: string) => string} read the Markdown of a page
 */
export function forModels(document, read) {
  const { documents, api, project } = contents(document);
  // Readers with little room may skip a section of this name.
  const sections = [...documents, api, { ...project, text: 'Optional' }];
  const { title, summary } = about();
  const head = `# ${title}\n\n> ${summary}\n`;
  const lists = sections.map(({ text, items }) => {
    const lines = items.map((item) => `- [${item.title}](/${item.file}): ${item.about}`);
    return `\n## ${text}\n\n${lines.join('\n')}\n`;
  });
  const pages = sections.flatMap(({ items }) =>
    items.map(({ file }) => `\n---\n\nSource: /${file}\n\n${read(file).trim()}\n`),
  );
  const full = 'Each page is Markdown. `/llms-full.txt` has all of them.';
  const note = 'All pages in one file. `/llms.txt` lists them.';
  return { list: `${head}\n${full}\n${lists.join('')}`, full: `${head}\n${note}\n${pages.join('')}` };
}
