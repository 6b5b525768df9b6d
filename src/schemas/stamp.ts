/** Names a state of the schemas: which changes came before it. Sent to queues in place of the schemas. */
import type { SchemaStamp } from '../job/record';

export function nextStamp(stamp: SchemaStamp | undefined, line: number): SchemaStamp {
  if (stamp === undefined) return `${line}.1`;
  const [known, number] = partsOf(stamp);
  return `${known}.${number + 1}`;
}

/** Is `known` other than `current`, and not later? */
export function isOutdated(known: SchemaStamp | undefined, current: SchemaStamp): boolean {
  if (known === undefined) return true;
  const [[line, number], [currentLine, currentNumber]] = [partsOf(known), partsOf(current)];
  return line !== currentLine || number < currentNumber;
}

function partsOf(stamp: SchemaStamp): [line: number, number: number] {
  const [line, number] = stamp.split('.').map(Number);
  return [line as number, number as number];
}
