/** What JSON Schema says of values: their types, their lengths, and which of them are equal. */
import { isObject } from '../job/envelope/fields';
import { own } from '../job/own';
import type { Work } from './work';

export function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** Characters of a text; one beyond U+FFFF, which is two units, counts once. */
export function lengthOf(text: string): number {
  let length = text.length;
  for (let at = 1; at < text.length; at++) {
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800) length--;
  }
  return length;
}

/** Equal keys for equal values, and only for those, in any order of members. */
export function keyOf(value: unknown, work: Work): unknown {
  if (typeof value === 'string' || (typeof value === 'object' && value !== null)) return canonical(value, work);
  work.spend(4);
  return value;
}

function canonical(value: unknown, work: Work): string {
  work.spend(typeof value === 'string' ? 4 + (value.length >> 2) : 4);
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, work)).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const names = Object.keys(value).sort();
  work.spend(4 * names.length);
  return `{${names.map((name) => `${canonical(name, work)}:${canonical(own(value, name), work)}`).join(',')}}`;
}

/** Exactly, as decimal numbers: 0.3 is a multiple of 0.1. */
export function isMultipleOf(value: number, divisor: number): boolean {
  const [number, exponent] = decimal(value);
  const [part, partExponent] = decimal(divisor);
  const shift = exponent - partExponent;
  const [whole, by] = shift >= 0 ? [number * 10n ** BigInt(shift), part] : [number, part * 10n ** BigInt(-shift)];
  return whole % by === 0n;
}

function decimal(value: number): [digits: bigint, exponent: number] {
  const [digits = '0', exponent = '0'] = Math.abs(value).toString().split('e');
  const [, fraction = ''] = digits.split('.');
  return [BigInt(digits.replace('.', '')), Number(exponent) - fraction.length];
}
