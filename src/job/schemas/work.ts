/**
 * How much work the schemas of one request may cause. It is counted, in steps, because no clock runs within a request.
 * Input of clients must not keep an isolate busy for seconds, for all its callers.
 */

/** One step takes 10 to 50 ns: a look at a keyword, or at a character under one state of a pattern. */
const MAX_STEPS = 8_000_000;

/** Thrown where no steps are left. */
export class OutOfWork extends Error {}

export class Work {
  constructor(private left = MAX_STEPS) {}

  /** @throws {OutOfWork} */
  spend(steps: number): void {
    this.left -= steps;
    if (this.left < 0) throw new OutOfWork();
  }
}
