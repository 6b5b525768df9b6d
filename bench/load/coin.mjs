/** The coin that the failing handler tosses: the same for the same job and attempt, so that outcomes can be predicted. */

/**
 * Does this attempt fail? True for half of all (job, attempt) pairs.
 * @param {number} n number of the job
 * @param {number} attempt from 1
 * @returns {boolean}
 */
export function fails(n, attempt) {
  // MurmurHash3's finaliser: every input bit reaches the lowest output bit.
  let h = Math.imul(n, 0x9e3779b1) ^ Math.imul(attempt, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) & 1) === 1;
}

/** The outcome of jobs 0 … jobs − 1: how many complete, how many are discarded, and how many runs that takes. */
export function predict(jobs, maxAttempts) {
  const outcome = { completed: 0, discarded: 0, runs: 0 };
  for (let n = 0; n < jobs; n++) {
    let attempt = 1;
    while (fails(n, attempt) && attempt < maxAttempts) attempt++;
    outcome.runs += attempt;
    if (fails(n, attempt)) outcome.discarded++;
    else outcome.completed++;
  }
  return outcome;
}
