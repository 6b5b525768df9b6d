/** Text in a terminal: how many columns it takes, and how it is cut. What others wrote is made harmless first. */
import { onOneLine } from '../output';

/** Joining marks. Terminals differ in how wide they draw joined characters, so the parts are shown one by one. */
const JOINERS = /[\u200b-\u200d\u2060]|[\ufe00-\ufe0f]|\ufeff|\p{Emoji_Modifier}|[\u{e0000}-\u{e0fff}]/gu;

/** What others wrote, as one line that neither steers the terminal nor turns its direction. */
export const foreign = (text: string): string => onOneLine(text).replace(JOINERS, '').trim();

/** A value in words, without the marks of JSON: `to: ada, items: (1, 2)`. */
export function valueText(value: unknown, isInner = false): string {
  if (typeof value !== 'object' || value === null) return String(value ?? 'none');
  const name = (key: string) => (Array.isArray(value) ? '' : `${key.replaceAll('_', ' ')}: `);
  const text = Object.entries(value).map(([key, member]) => name(key) + valueText(member, true));
  return isInner ? `(${text.join(', ')})` : text.join(', ');
}

/** {@link valueText} of each member that has a value. */
export const membersText = (members: Readonly<Record<string, unknown>>): string =>
  Object.entries(members)
    .flatMap(([name, value]) => (value === null ? [] : [`${name.replaceAll('_', ' ')} ${valueText(value, true)}`]))
    .join(' · ');

/** Characters that take two columns, as the terminals of East Asia have them, and pictures. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
const PICTURE = /(?!\p{Regional_Indicator})\p{Emoji_Presentation}/u;
/** Marks on the character before. */
const MARK = /[\p{Mn}\p{Me}\p{Cf}]/u;
const PLAIN = /^[\x20-\x7e]*$/;

function columnsOf(character: string): number {
  if (MARK.test(character)) return 0;
  return WIDE.test(character) || PICTURE.test(character) ? 2 : 1;
}

export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += columnsOf(character);
  return width;
}

export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  if (width <= 0) return '';
  let used = 0;
  let kept = '';
  for (const character of text) {
    used += columnsOf(character);
    if (used > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** A text of exactly this width. @param end it stands at the end of it */
export function fitTo(text: string, width: number, end = false): string {
  const shown = cutTo(text, width);
  const space = ' '.repeat(Math.max(0, width - widthOf(shown)));
  return end ? space + shown : shown + space;
}
