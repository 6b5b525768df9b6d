import 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** Further retry vectors from outside the repository, when the configuration found some; null otherwise. */
    sharedRetryVectors: unknown[] | null;
    /** Is this `npm run test:long`? */
    long: boolean;
    /** How many requests the fuzz run sends. */
    fuzz: { runs: number; seed: number };
  }
}
