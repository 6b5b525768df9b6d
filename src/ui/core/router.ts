/** Routing. All that a page shows follows from its URL. Clicks on plain links within the dashboard do not reload it. */
import { computed, signal } from '@preact/signals';

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

export const url = signal(new URL(window.location.href));

/** The path below the dashboard's root, without slashes around it; `''` is the overview. */
export const path = computed(() => {
  const { pathname } = url.value;
  return pathname.startsWith(BASE.pathname) ? pathname.slice(BASE.pathname.length).replace(/\/+$/, '') : '';
});

/** A member of the query; `''` when it is absent. A component that reads it is redrawn when it changes. */
export const query = (name: string): string => url.value.searchParams.get(name) ?? '';

export function pageNumber(): number {
  const page = Number(query('page'));
  return Number.isInteger(page) && page > 0 ? page : 1;
}

export interface NavigateOptions {
  /** Takes the place of this entry of the history: for text while it is typed. */
  replace?: boolean;
}

export function navigate(to: string, { replace = false }: NavigateOptions = {}): void {
  const next = new URL(to, BASE);
  if (next.href === url.value.href) return;
  keepScroll();
  if (replace) history.replaceState(history.state, '', next);
  else history.pushState({ entry: ++entries }, '', next);
  const isOtherPage = next.pathname !== url.value.pathname;
  url.value = next;
  if (isOtherPage) window.scrollTo(0, 0);
}

/** Changes members of the query; empty ones are removed. Any filter leads back to the first page. */
export const setQuery = (changes: Query, options?: NavigateOptions): void => navigate(withQuery(changes), options);

/** As {@link setQuery}, as the address of a link. */
export function withQuery(changes: Query): string {
  const next = new URL(url.value);
  writeQuery(next, { ...(!('page' in changes) && { page: null }), ...changes });
  return next.pathname + next.search;
}

/** The address of the same page with a drawer or form over it, or without: `aside({ edit: 'new' })`. */
export const aside = (changes: Query): string => withQuery({ page: query('page'), ...changes });

export const openAside = (changes: Query): void => navigate(aside(changes));

/** How far each entry of the history was scrolled. */
const scrolled = new Map<number, number>();
let entries = Date.now();

const entryOf = (state: unknown): number => (state as { entry?: number } | null)?.entry ?? 0;

function keepScroll(): void {
  scrolled.set(entryOf(history.state), window.scrollY);
}

/** How long a page may take until it is as long as it was, in ms. */
const RESTORE_MS = 1_500;

/** Lists are drawn when they have been loaded; only then can the page be scrolled to where it was. */
function restoreScroll(): void {
  const wanted = scrolled.get(entryOf(history.state)) ?? 0;
  const until = performance.now() + RESTORE_MS;
  const at = url.value;
  const step = () => {
    if (url.value !== at) return;
    const reach = document.documentElement.scrollHeight - window.innerHeight;
    if (reach >= wanted || performance.now() > until) window.scrollTo(0, wanted);
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

/** Answers links and the back button. Called once. */
export function startRouter(): void {
  history.scrollRestoration = 'manual';
  window.addEventListener('popstate', () => {
    url.value = new URL(window.location.href);
    restoreScroll();
  });
  window.addEventListener('scroll', keepScroll, { passive: true });
  document.addEventListener('click', (event) => {
    const { button, metaKey, ctrlKey, shiftKey, altKey } = event;
    if (event.defaultPrevented || button !== 0 || metaKey || ctrlKey || shiftKey || altKey) return;
    const link = (event.target as Element | null)?.closest('a');
    if (!link?.href || link.target || link.hasAttribute('download')) return;
    const to = new URL(link.href);
    const isOurs = to.origin === BASE.origin && `${to.pathname}/`.startsWith(BASE.pathname);
    if (!isOurs || to.pathname.startsWith(`${BASE.pathname}assets/`) || (to.hash && isSamePage(to))) return;
    event.preventDefault();
    navigate(to.href);
  });
}

const isSamePage = (to: URL): boolean =>
  to.pathname === window.location.pathname && to.search === window.location.search;
