/** Checks on JSON text that `JSON.parse` does not make. */
import type { Outline } from './nesting';

/** Texts in which a value may hide that would not survive being stored: a surrogate escape, or a huge number. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;
const HUGE_EXPONENT = /\d[eE]\+?\d{3}/;
/** This many digits in a row may be a huge number, too. */
const HUGE = 200;

/** May this JSON text hold half a character, or a number that is not finite? A cheap check before the value's own. */
export function isSuspicious(text: string, { digits, hasExponent }: Outline): boolean {
  if (digits >= HUGE || (hasExponent && HUGE_EXPONENT.test(text))) return true;
  // Finding a text is much faster than a pattern.
  return text.includes('\\u') && SURROGATE_ESCAPE.test(text);
}

/** Are there `count` digits in a row? Looks only at every `count`th character and around it. */
export function hasDigits(text: string, count: number): boolean {
  for (let at = count - 1; at < text.length; at += count) {
    if (!isDigit(text, at)) continue;
    let first = at;
    let end = at + 1;
    while (isDigit(text, first - 1)) first--;
    while (isDigit(text, end)) end++;
    if (end - first >= count) return true;
  }
  return false;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
}

export function enlisted(before: string, items: readonly string[], after: string): string {
  const last = items.length - 1;
  if (last < 0) return before + after;
  const parts = [...items];
  parts[0] = before + items[0];
  parts[last] += after;
  return parts.join(',');
}
