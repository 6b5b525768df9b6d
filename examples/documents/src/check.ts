/** Checks the links of one document. */
import { UnrecoverableError } from '../../../src/handler';
import type { LinkCheck } from './document';
import { type Broken, linksOf, problemOf, targetOf } from './links';
import { type Fetch, pageExists } from './visit';

/** Links lead nowhere. Another run would find the same, so the job becomes a dead letter for its author. */
export class BrokenLink extends UnrecoverableError {
  constructor(
    path: string,
    readonly details: { broken: Broken[] },
  ) {
    const list = details.broken.map(({ href, problem }) => `${href} (${problem})`).join(', ');
    super(`${path}: ${list}`);
  }
}

/** Result of `link.check`, when every link leads somewhere. */
export interface CheckedLinks {
  /** Different targets found. */
  links: number;
  /** Links into the project. */
  local: number;
  /** Pages visited. */
  visited: number;
  /** Links to origins that are not allowed, mail addresses and similar. */
  skipped: number;
}

/**
 * Checks links into the project first. They need no network, and when one is broken the rest does not matter. Then it
 * visits the pages of allowed origins, one after the other.
 * @throws {BrokenLink} with all links into the project, or all pages, that are not there
 * @throws {PageUnavailable} and others of {@link pageExists}
 */
export async function checkLinks(check: LinkCheck, fetch: Fetch, signal: AbortSignal): Promise<CheckedLinks> {
  const result: CheckedLinks = { links: 0, local: 0, visited: 0, skipped: 0 };
  const broken: Broken[] = [];
  const pages: { href: string; url: URL; reachedAt: string }[] = [];
  for (const href of linksOf(check.markdown)) {
    result.links++;
    const target = targetOf(href, check.path);
    if (target.kind === 'file') {
      result.local++;
      const problem = problemOf(target, check);
      if (problem !== undefined) broken.push({ href, problem });
      continue;
    }
    const reachedAt = target.kind === 'url' ? check.origins?.[target.url.origin] : undefined;
    if (target.kind === 'url' && reachedAt !== undefined) pages.push({ href, url: target.url, reachedAt });
    else result.skipped++;
  }
  if (broken.length > 0) throw new BrokenLink(check.path, { broken });
  for (const { href, url, reachedAt } of pages) {
    if (!(await pageExists(url, reachedAt, fetch, signal))) broken.push({ href, problem: 'there is no such page' });
    result.visited++;
  }
  if (broken.length > 0) throw new BrokenLink(check.path, { broken });
  return result;
}
