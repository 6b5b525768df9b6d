/** FNV-1a over the text's units, 32 bits, signed: names things, and guards nothing. */
export function fnv1a(text: string, seed = 0x811c9dc5): number {
  let value = seed;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value;
}
