/** Steps that the schemas of one request may cost; no clock runs within a request. */

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
