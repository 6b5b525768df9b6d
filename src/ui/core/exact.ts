/** JSON whose numbers keep their text: 64-bit ids and amounts must be shown, and sent back, unchanged. */

/** A number that JavaScript cannot hold as it was written. */
export class ExactNumber {
  constructor(readonly source: string) {}

  toString(): string {
    return this.source;
  }

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

export const parseExact = (text: string): unknown =>
  JSON.parse(text, keepSource as (key: string, value: unknown) => unknown);

export const stringifyExact = (value: unknown, indent = 2): string =>
  JSON.stringify(value, undefined, indent) ?? 'undefined';
