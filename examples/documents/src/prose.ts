/** Counts words, sentences and syllables, and computes the readability of a text. */

/** Counts over the prose of a document. */
export interface ProseCounts {
  words: number;
  sentences: number;
  syllables: number;
}

/** Words a minute that adults read silently: Brysbaert (2019), mean over English non-fiction. */
const WORDS_PER_MINUTE = 238;

const words = new Intl.Segmenter('en', { granularity: 'word' });
const sentences = new Intl.Segmenter('en', { granularity: 'sentence' });

/** Counts paragraph by paragraph: a sentence never reaches beyond its paragraph. */
export function countProse(paragraphs: readonly string[]): ProseCounts {
  const counts: ProseCounts = { words: 0, sentences: 0, syllables: 0 };
  for (const paragraph of paragraphs) {
    for (const { segment: sentence } of sentences.segment(paragraph)) {
      const found = wordsOf(sentence);
      if (found.length > 0) counts.sentences++;
      counts.words += found.length;
      for (const word of found) counts.syllables += countSyllables(word);
    }
  }
  return counts;
}

function wordsOf(text: string): string[] {
  return Array.from(words.segment(text)).flatMap(({ segment, isWordLike }) => (isWordLike ? [segment] : []));
}

/**
 * Syllables of an English word, by its groups of vowels: right for about nine words in ten, which is enough for an
 * average. At least 1, also for numbers and other scripts.
 */
export function countSyllables(word: string): number {
  const letters = word.toLowerCase().replace(/[^a-z]/g, '');
  const spoken = letters.replace(/(?:[^laeiouy]es|[^td]ed|[^laeiouy]e)$/, (ending) => ending.charAt(0));
  return Math.max(1, spoken.match(/[aeiouy]+/g)?.length ?? 0);
}

/** Minutes to read this many words, to one decimal. */
export function readingMinutes(wordCount: number): number {
  return round(wordCount / WORDS_PER_MINUTE);
}

/** Flesch (1948): 206.835 − 1.015 · words per sentence − 84.6 · syllables per word, to one decimal. */
export function fleschReadingEase(counts: ProseCounts): number | null {
  if (counts.words === 0 || counts.sentences === 0) return null;
  return round(206.835 - 1.015 * (counts.words / counts.sentences) - 84.6 * (counts.syllables / counts.words));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
