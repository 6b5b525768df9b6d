/** The header `Prefer` (RFC 7240): what a client would rather be answered. What is not known is passed over. */
import type { AppContext } from '../context';

/** Said of an answer that leaves out what the request brought. */
export const MINIMAL = { 'Preference-Applied': 'return=minimal' };

/** Does the client ask for no more than it cannot know, `return=minimal`? Of several preferences for the answer the first counts. */
export function prefersMinimal(c: AppContext): boolean {
  const preferences = c.req.header('Prefer')?.split(',') ?? [];
  for (const preference of preferences) {
    const [name = '', value = ''] = (preference.split(';', 1)[0] ?? '').split('=').map((part) => part.trim());
    if (name.toLowerCase() === 'return') return value.replace(/^"(.*)"$/, '$1').toLowerCase() === 'minimal';
  }
  return false;
}
