/**
 * Where links lead. In the project a link is a path beside the file that has it, as GitHub follows it; on the site every file
 * that a page links is a page with an address.
 */
import { existsSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

export const root = join(import.meta.dirname, '../..');

/** Files of the project that are documents, beside those that docs/README.md lists. */
const ABOUT = {
  'README.md': 'readme',
  'CHANGELOG.md': 'changelog',
  LICENSE: 'license',
  '.github/CONTRIBUTING.md': 'contributing',
  '.github/SECURITY.md': 'security',
};

/**
 * The page of a file or folder of the project.
 * @param {string} path
 * @returns {{ address: string, file: string } | undefined} its address on the site and the file that it is made of; undefined for
 *   what the site shows as it is
 */
export function pageOf(path) {
  if (/^docs\/.*\.(png|json)$/.test(path)) return undefined;
  const name = ABOUT[path] ?? placeOf(path);
  return { address: `/${name.replace(/(^|\/)index$/, '$1')}`, file: `${name}.md` };
}

function placeOf(path) {
  if (path.startsWith('docs/') && path.endsWith('.md')) {
    return path
      .replace(/^docs\//, '')
      .replace(/\.md$/, '')
      .replace(/(^|\/)README$/, '$1index');
  }
  // A dot would make a server take the last part for a kind of file.
  return `project/${path.replace(/\/$/, '').replace(/^\./, '').replaceAll('.', '-')}`;
}

/**
 * The target of a link of the project.
 * @param {string} from the file that has it
 * @param {string} href
 * @returns {{ path: string, anchor: string } | undefined} undefined for what leads elsewhere
 */
export function resolveLink(from, href) {
  if (/^[a-z][a-z0-9+.-]*:|^\/|^#/i.test(href)) return undefined;
  const [file, anchor] = href.split('#');
  const path = posix.join(dirname(from), decodeURIComponent(file)).replace(/\/$/, '');
  if (path.startsWith('..') || !existsSync(join(root, path))) return undefined;
  return { path, anchor: anchor === undefined ? '' : `#${anchor}` };
}

/**
 * The address on the site that a link of the project leads to.
 * @param {string} from the file that has it
 * @param {string} href
 * @returns {string} the link itself, if it leads elsewhere or nowhere
 */
export function addressOf(from, href) {
  const target = resolveLink(from, href);
  if (target === undefined) return href;
  const address = pageOf(target.path)?.address ?? `/${target.path.replace(/^docs\//, '')}`;
  return address + target.anchor;
}

/** The files that text links: Markdown outside of code. @param {string} text */
export function linksIn(text) {
  const prose = text.replace(/^(`{3,}).*?^\1/gms, '').replace(/`[^`]*`/g, 'code');
  return Array.from(prose.matchAll(/\]\(([^)\s]+)\)/g), ([, href]) => href);
}
