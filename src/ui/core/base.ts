/** Where the dashboard and the API are, relative to the page, so both work wherever the queue is mounted. */

/** The dashboard's own root, with a slash at its end. Read once: the document's base follows no later navigation. */
export const BASE = new URL('.', document.baseURI);

/** The root of the API, with a slash at its end. */
export const API = new URL(document.documentElement.dataset.api ?? '../ojs/v1/', BASE);

/** Values of a query string; what is empty is left out. */
export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** A link to a page: `href('jobs', { state: 'active' })`. Segments that hold names go through {@link segment}. */
export function href(path: string, query: Query = {}): string {
  const url = new URL(path, BASE);
  writeQuery(url, query);
  return url.pathname + url.search;
}

/** A name as a part of a path. @throws {Error} for `.` and `..`, which browsers would make another path */
export function segment(name: string): string {
  if (/^\.\.?$/.test(name)) throw new Error(`${name} cannot be named in a path.`);
  return encodeURIComponent(name);
}

/** Sets members of a URL's query, and removes those that are empty. */
export function writeQuery(url: URL, query: Query): void {
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === '' || value === false) url.searchParams.delete(name);
    else url.searchParams.set(name, String(value));
  }
}
