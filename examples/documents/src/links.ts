/** The links of a document: their targets, and whether these exist. */
import type { LinkCheck } from './document';
import { anchorsOf, parseMarkdown, walk } from './markdown';

/** Where a link leads. */
export type Target =
  /** A file or folder of the project; the path is undefined when it leads out of the project. */
  | { kind: 'file'; path: string | undefined; anchor: string | undefined }
  | { kind: 'url'; url: URL }
  /** Mail addresses and similar, and URLs that cannot be parsed. */
  | { kind: 'other' };

/** A link that leads nowhere. */
export interface Broken {
  href: string;
  problem: string;
}

/** The targets of all links and images in the order of the document, each once. */
export function linksOf(markdown: string): string[] {
  const found = new Set<string>();
  walk(parseMarkdown(markdown), (token) => {
    if (token.type === 'link' || token.type === 'image') found.add(String(token.href));
  });
  return [...found];
}

/** Reads a link as it is written in the document at `from`. A path that begins with `/` starts at the project's root. */
export function targetOf(href: string, from: string): Target {
  if (/^[a-z][a-z0-9+.-]*:/i.test(href) || href.startsWith('//')) {
    const url = URL.canParse(href) ? new URL(href) : undefined;
    return url && /^https?:$/.test(url.protocol) ? { kind: 'url', url } : { kind: 'other' };
  }
  const [, written = '', , fragment] = /^([^?#]*)(\?[^#]*)?(?:#(.*))?$/s.exec(href) ?? [];
  const anchor = fragment ? decode(fragment) : undefined;
  if (written === '') return { kind: 'file', path: from, anchor };
  const folder = written.startsWith('/') ? [] : from.split('/').slice(0, -1);
  return { kind: 'file', path: resolve(folder, decode(written)), anchor };
}

/** Follows `path` from `folder`; undefined when it climbs above the root. */
function resolve(folder: readonly string[], path: string): string | undefined {
  const parts = [...folder];
  for (const part of path.split('/')) {
    if (part === '..') {
      if (parts.pop() === undefined) return undefined;
    } else if (part !== '' && part !== '.') parts.push(part);
  }
  return parts.join('/');
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The mistake in a link into the project, or undefined. */
export function problemOf(target: Target & { kind: 'file' }, check: LinkCheck): string | undefined {
  const { path, anchor } = target;
  if (path === undefined) return 'leads out of the project';
  const anchors = path === check.path ? anchorsOf(check.markdown) : anchorsIn(check.files, path);
  if (anchors === undefined) return isFolder(check.files, path) ? undefined : `there is no file ${path}`;
  if (anchor === undefined || anchors === null || anchors.includes(anchor)) return undefined;
  return `${path} has no heading #${anchor}`;
}

function anchorsIn(files: LinkCheck['files'], path: string): readonly string[] | null | undefined {
  return Object.hasOwn(files, path) ? files[path] : undefined;
}

function isFolder(files: LinkCheck['files'], path: string): boolean {
  return path === '' || Object.keys(files).some((file) => file.startsWith(`${path}/`));
}
