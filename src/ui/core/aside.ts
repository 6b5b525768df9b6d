/**
 * What lies over a page, such as a drawer or a form: whether it is open stands in the URL, and the page of the list
 * stays.
 */
import type { Query } from './base';
import { navigate, query, withQuery } from './router';

/** The address of the same page with something over it, or without: `aside({ edit: 'new' })`. */
export function aside(changes: Query): string {
  return withQuery({ page: query('page'), ...changes });
}

/** Goes there. */
export function openAside(changes: Query): void {
  navigate(aside(changes));
}
