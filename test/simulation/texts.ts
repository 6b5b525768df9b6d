/** Long texts, written in few characters so that a history that has them can be printed, and made smaller. */

/** What a text consists of: one byte a character or more, some that JSON escapes, and pairs that a cut must not divide. */
const CHARACTERS = {
  ascii: 'a',
  accents: 'é',
  cyrillic: 'ж',
  euro: '€',
  bells: '🔔',
  quotes: '"',
  controls: '\u0001',
};

export interface Text {
  of: keyof typeof CHARACTERS;
  /** In UTF-16 units, as JavaScript counts. */
  length: number;
}

export const ALPHABETS = Object.keys(CHARACTERS) as Text['of'][];

/** The text itself. One of pairs that has an odd length begins with a letter, so that its pairs begin at odd places. */
export function write({ of, length }: Text): string {
  const character = CHARACTERS[of];
  return 'x'.repeat(length % character.length) + character.repeat(Math.floor(length / character.length));
}

/** How many bytes it takes in a JSON text. */
export function bytesOf(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).byteLength;
}

/** As much of a text as takes so many bytes in a JSON text: what is longer is refused before it comes to a queue. */
export function within({ of, length }: Text, bytes: number): Text {
  const bytesOfUnit = (bytesOf(write({ of, length: 2 })) - 2) / 2;
  return { of, length: Math.min(length, Math.floor((bytes - 4) / bytesOfUnit)) };
}

/** What a result and a checkpoint may say at most, and the data of a progress report beside the name of its member; bytes. */
export const MAX_SAID = 1_048_576;
export const MAX_DATA = 65_500;

/** What a message between objects holds, bytes. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

/**
 * About how many bytes an answer takes between objects: a text takes one for each unit, or two where it goes beyond Latin, and
 * an object that is there several times is sent once.
 */
export function weightOf(value: unknown, sent = new Set<unknown>()): number {
  if (typeof value === 'string') return hasWide(value) ? 2 * value.length : value.length;
  if (typeof value !== 'object' || value === null || sent.has(value)) return 8;
  sent.add(value);
  return Object.entries(value).reduce((sum, [name, member]) => sum + name.length + weightOf(member, sent), 0);
}

function hasWide(text: string): boolean {
  return /[^\0-\xff]/.test(text);
}

/** Long texts of a job. Absent: it has none. */
export interface JobTexts {
  args?: Text | undefined;
  meta?: Text | undefined;
  /** A directive for tests, which is copied into the lease. */
  directive?: Text | undefined;
  /** As often as it may have one. */
  tags?: Text | undefined;
  /** Characters of the type; only of a job that is not unique. */
  type?: number | undefined;
}

/** Long texts of a failure. */
export interface ErrorTexts {
  code?: Text | undefined;
  type?: Text | undefined;
  message?: Text | undefined;
  details?: Text | undefined;
  class?: Text | undefined;
}

/** What is kept of a failure at most, in UTF-16 units. */
export const KEPT = { code: 255, type: 255, message: 8192 };
