import 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** Further retry vectors from outside the repository, when the configuration found some; null otherwise. */
    sharedRetryVectors: unknown[] | null;
    /** Is this `npm run test:long`? */
    long: boolean;
    /** How much the simulation plays, or the one history that it plays; a null seed is a random one. */
    simulation: {
      runs: number;
      seed: number | null;
      length: number;
      skip: number;
      shrinks: boolean;
      history: object | null;
    };
    /** How many requests the fuzz run sends. */
    fuzz: { runs: number; seed: number };
  }
}
