/** The arguments of this Worker's jobs, checked before any work is done. */
import { UnrecoverableError } from '../../../src/handler';

/** A Markdown document. */
export interface MarkdownDocument {
  /** Path in its project, with `/` between folders and none at the start. */
  path: string;
  markdown: string;
}

/** The additional arguments of `link.check`, which has no file system. */
export interface LinkCheck extends MarkdownDocument {
  /** Every file of the project with its anchors; `null` where they are not known. */
  files: Record<string, readonly string[] | null>;
  /** Allowed origins, and the address of each. Links to all others are skipped. */
  origins?: Record<string, string>;
}

/** Job arguments by type, for producers and handlers alike. */
export type DocumentJobs = {
  'document.render': [MarkdownDocument];
  'document.digest': [MarkdownDocument];
  'link.check': [LinkCheck];
};

/** The job's arguments are wrong and stay so in every run: a dead letter at once. */
export class InvalidArguments extends UnrecoverableError {}

/**
 * Reads the arguments of `document.render` and `document.digest`.
 * @throws {InvalidArguments}
 */
export function readDocument(args: readonly unknown[]): MarkdownDocument {
  const [given] = args;
  if (!isObject(given)) throw new InvalidArguments('args[0] must be {path, markdown}');
  const { path, markdown } = given;
  if (typeof path !== 'string' || path === '') throw new InvalidArguments('args[0].path must be a path');
  if (typeof markdown !== 'string') throw new InvalidArguments('args[0].markdown must be text');
  return { path, markdown };
}

/**
 * Reads the arguments of `link.check`.
 * @throws {InvalidArguments}
 */
export function readLinkCheck(args: readonly unknown[]): LinkCheck {
  const document = readDocument(args);
  const { files, origins = {} } = args[0] as Record<string, unknown>;
  if (!isObject(files)) throw new InvalidArguments('args[0].files must be an object of anchors by path');
  const anchors = Object.entries(files).map(([path, known]): [string, string[] | null] => {
    if (known === null || isTextList(known)) return [path, known];
    throw new InvalidArguments(`args[0].files[${JSON.stringify(path)}] must be a list of anchors, or null`);
  });
  if (!isObject(origins)) throw new InvalidArguments('args[0].origins must be an object of URLs by origin');
  const reachable = Object.entries(origins).map(([origin, url]): [string, string] => {
    if (typeof url === 'string' && URL.canParse(url)) return [origin, url];
    throw new InvalidArguments(`args[0].origins[${JSON.stringify(origin)}] must be a URL`);
  });
  return { ...document, files: Object.fromEntries(anchors), origins: Object.fromEntries(reachable) };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}
