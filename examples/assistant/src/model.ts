/** A model that runs nowhere: it says the same about everything, a word at a time. */

/** Milliseconds between two words. */
const PACE_MS = 40;

/** The words of an answer, as a model would stream them. */
export async function* answer(question: string, sources: readonly string[], pace = PACE_MS): AsyncGenerator<string> {
  const text = `You asked: ${question} I have read ${sources.join(' and ')}. The short answer is that it depends.`;
  for (const word of text.split(/(?<= )/)) {
    await scheduler.wait(pace);
    yield word;
  }
}
