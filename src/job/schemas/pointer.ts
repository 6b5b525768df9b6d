export const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');
export const unescaped = (name: string) => name.replaceAll('~1', '/').replaceAll('~0', '~');

/** The pointer of a `$ref` within its schema: `/$defs/name`. */
export function pointerOf(reference: string): string {
  try {
    return decodeURIComponent(reference.slice(1));
  } catch {
    return reference.slice(1);
  }
}
