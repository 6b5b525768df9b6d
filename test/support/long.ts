/**
 * What `npm test` plays in part, and `npm run test:long` whole: many histories of a property, and sizes that take a while to reach.
 * A file that imports this is run by both. See `LONG` in vitest.config.ts.
 */
import { inject } from 'vitest';

/** Is this the run that may take its time? */
export const isLong = inject('long');

/** How many histories of a property to play: all of `runs`, or a fifth in the short run. */
export const histories = (runs: number): number => (isLong ? runs : Math.ceil(runs / 5));
