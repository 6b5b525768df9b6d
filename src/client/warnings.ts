/** What happens to the server's warnings without `onWarning`. */

/** Texts remembered at most. */
const MAX_TEXTS = 200;

const warned = new Set<string>();

/** Writes a warning to the console, each text once: a producer sends the same wrong job again and again. */
export function warnOnce(warning: string): void {
  if (warned.has(warning) || warned.size >= MAX_TEXTS) return;
  warned.add(warning);
  console.warn(`tocsin: ${warning}`);
}
