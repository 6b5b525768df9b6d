import 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** Further retry vectors from outside the repository, when the configuration found some; null otherwise. */
    sharedRetryVectors: unknown[] | null;
  }
}
