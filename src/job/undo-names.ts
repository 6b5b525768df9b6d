/** The member of `meta` that names the job whose steps a job undoes. */
export const UNDO_OF = 'undo_of';

/** Ends the type of a job that undoes another: `order.fulfil.undo`. */
export const UNDO_SUFFIX = '.undo';
