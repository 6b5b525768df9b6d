/**
 * JSON whose payloads keep integers that a double cannot hold, as raw numbers that `JSON.stringify` writes unchanged.
 * A raw number does not survive a call between objects, so payloads cross as text.
 */
import { hasDigits } from './json-text';
import { MAX_SHOWN_DEPTH, nestingDepth, type Outline } from './nesting';

/** What the runtime has and the types do not know yet. Node 20, which runs the command line, does not have it. */
interface RawJson {
  rawJSON(text: string): object;
  isRawJSON?(value: unknown): boolean;
  parse(text: string, revive: (name: string, value: unknown, context?: { source: string }) => unknown): unknown;
}
const json = JSON as unknown as RawJson;

/** A text without this many digits in a row has no such integer. */
const LONG = 16;
/** Levels of values that may be revived: those of a stored value, and of a line in a file around it. */
export const MOST_RECURSION = MAX_SHOWN_DEPTH + 10;
const INTEGER = /^-?\d+$/;

/** Members that hold payloads, and members that lead to jobs and reports with payloads. */
const PAYLOADS: ReadonlySet<string> = new Set(['args', 'meta', 'metadata', 'result']);
const LEADING: ReadonlySet<string> = new Set(['jobs', 'options', 'reports', 'results']);

/** Is this a number that a double cannot hold? */
export const isRawNumber = (value: unknown): boolean => json.isRawJSON?.(value) ?? false;

/** `JSON.parse` that keeps all integers exact: for stored text. */
export const parseExactly = (text: string, outline?: Outline): unknown =>
  mayHoldLong(text, outline) ? json.parse(text, keepInteger) : JSON.parse(text);

/** `JSON.parse` that keeps integers exact in payloads of jobs and reports: for text from clients and handlers. */
export const parsePayloads = (text: string, outline?: Outline): unknown =>
  mayHoldLong(text, outline) ? rounded(json.parse(text, keepInteger), true) : JSON.parse(text);

/** Keeping integers takes recursion, for which some texts nest too deeply. Nothing of those is kept anyway. */
function mayHoldLong(text: string, outline?: Outline): boolean {
  if (outline) return outline.digits >= LONG && outline.depth <= MOST_RECURSION;
  return hasDigits(text, LONG) && nestingDepth(text, MOST_RECURSION) <= MOST_RECURSION;
}

/** @throws {RangeError} where the runtime cannot keep it: Node 20 */
function keepInteger(_: string, value: unknown, context?: { source: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || !Number.isFinite(value)) return value;
  if (!context) {
    if (!Number.isInteger(value)) return value;
    throw new RangeError(
      `an integer beyond 2^53, about ${value}, cannot be kept exactly by this Node.js: use 22 or newer`,
    );
  }
  const { source } = context;
  return INTEGER.test(source) && String(value) !== source ? json.rawJSON(source) : value;
}

/** Rounds everything but payloads, in place. @param leads may there be payloads inside? */
function rounded(value: unknown, leads: boolean): unknown {
  if (isRawNumber(value)) return Number((value as { rawJSON: string }).rawJSON);
  if (typeof value !== 'object' || value === null) return value;
  const members = value as Record<string, unknown>;
  for (const [name, member] of Object.entries(members)) {
    if (leads && PAYLOADS.has(name)) continue;
    members[name] = rounded(member, leads && (Array.isArray(value) || LEADING.has(name)));
  }
  return value;
}
