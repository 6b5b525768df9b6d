/**
 * JSON whose numbers keep the text they came with: 64-bit ids and amounts must be shown, and sent back, as they are.
 */

/** A number that JavaScript cannot hold as it was written. */
export class ExactNumber {
  constructor(readonly source: string) {}

  toString(): string {
    return this.source;
  }

  /** Written as it was read, where the browser can. */
  toJSON(): unknown {
    const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown };
    return rawJSON ? rawJSON(this.source) : Number(this.source);
  }
}

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

const keepSource: Reviver = (_, value, context) => {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  return String(value) === context.source ? value : new ExactNumber(context.source);
};

/** Parses JSON. @throws {SyntaxError} */
export function parseExact(text: string): unknown {
  return JSON.parse(text, keepSource as (key: string, value: unknown) => unknown);
}

/** The text of a value that {@link parseExact} read. */
export function stringifyExact(value: unknown, indent = 2): string {
  return JSON.stringify(value, undefined, indent) ?? 'undefined';
}
