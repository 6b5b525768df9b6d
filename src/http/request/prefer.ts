/** The header `Prefer` (RFC 7240): the answer that a client would prefer. Unknown preferences are ignored. */
import type { AppContext } from '../context';

/** Marks an answer that leaves out the content of the request. */
export const MINIMAL = { 'Preference-Applied': 'return=minimal' };

/** Does the client ask for `return=minimal`, only what it cannot know? The first of several preferences counts. */
export function prefersMinimal(c: AppContext): boolean {
  const preferences = c.req.header('Prefer')?.split(',') ?? [];
  for (const preference of preferences) {
    const [name = '', value = ''] = (preference.split(';', 1)[0] ?? '').split('=').map((part) => part.trim());
    if (name.toLowerCase() === 'return') return value.replace(/^"(.*)"$/, '$1').toLowerCase() === 'minimal';
  }
  return false;
}
