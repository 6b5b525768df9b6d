/** Figures about a document: its fingerprint, its length, and how hard it is to read. */
import type { MarkdownDocument } from './document';
import { headingsOf, parseMarkdown } from './markdown';
import { paragraphsOf } from './paragraphs';
import { countProse, fleschReadingEase, readingMinutes } from './prose';

/** Result of `document.digest`. */
export interface Digest {
  /** SHA-256 of the UTF-8 text, in hexadecimal. */
  sha256: string;
  bytes: number;
  words: number;
  sentences: number;
  headings: number;
  reading_minutes: number;
  /** About 0 (hard) … 100 (easy), for English; null without words. */
  flesch_reading_ease: number | null;
}

/** Measures a document. Code does not count as prose. */
export async function digest({ markdown }: MarkdownDocument): Promise<Digest> {
  const utf8 = new TextEncoder().encode(markdown);
  const tokens = parseMarkdown(markdown);
  const prose = countProse(paragraphsOf(tokens));
  return {
    sha256: hex(await crypto.subtle.digest('SHA-256', utf8)),
    bytes: utf8.length,
    words: prose.words,
    sentences: prose.sentences,
    headings: headingsOf(tokens).length,
    reading_minutes: readingMinutes(prose.words),
    flesch_reading_ease: fleschReadingEase(prose),
  };
}

function hex(buffer: ArrayBuffer): string {
  return Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
