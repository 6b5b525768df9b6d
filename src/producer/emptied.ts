/** Finds values that JSON empties (a `Map` becomes `{}`, NaN null, a function nothing), whose content would be lost. */
import { ignoreRejection, safely, tagOf } from '../job/thrown';

export interface Emptied {
  /** Where it is, such as `args[0].users`. */
  path: string;
  /** What it is, and what to pass instead. */
  problem: string;
}

/** What to pass instead of values of some types, by their tags. */
const INSTEAD: Readonly<Record<string, string>> = {
  Map: 'pass Object.fromEntries(map) or [...map]',
  Set: 'pass [...set]',
  WeakMap: 'it cannot be sent',
  WeakSet: 'it cannot be sent',
  WeakRef: 'it cannot be sent',
  Promise: 'await it',
  Response: 'pass its status and what is in it, such as await response.json(); throw an error if it failed',
  Request: 'pass its url, and what is in it',
  Headers: 'pass Object.fromEntries(headers)',
  FormData: 'pass Object.fromEntries(form)',
  URLSearchParams: 'pass Object.fromEntries(params)',
  ReadableStream: 'read it, and pass what it holds',
  WritableStream: 'it cannot be sent',
  TransformStream: 'it cannot be sent',
  Blob: 'pass await blob.text()',
  File: 'pass await file.text()',
  ArrayBuffer: 'pass its content as base64 text',
  SharedArrayBuffer: 'pass its content as base64 text',
  DataView: 'pass its content as base64 text',
  Error: 'throw it, or pass its message',
  DOMException: 'throw it, or pass its message',
  RegExp: 'pass its source',
};

/** The first value that JSON empties, if any; undefined members, `toJSON` and class instances are fine. */
export function findEmptied(value: unknown, path: string): Emptied | undefined {
  return safely(() => find(value, path, new Set()), undefined);
}

function find(value: unknown, path: string, seen: Set<object>): Emptied | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? undefined : { path, problem: `it is ${value}, for which JSON has null` };
    case 'function':
    case 'symbol':
      return { path, problem: `it is a ${typeof value}, which JSON leaves out` };
    case 'object':
      if (value === null || seen.has(value)) return undefined;
      seen.add(value);
      return findIn(value, path, seen);
    case 'bigint':
      return hasJsonOfBigInt() ? undefined : { path, problem: 'it is a BigInt: pass a text or a number' };
    default:
      return undefined;
  }
}

function findIn(value: object, path: string, seen: Set<object>): Emptied | undefined {
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const found = isHarmless(value[at]) ? undefined : find(value[at], `${path}[${at}]`, seen);
      if (found) return refusedWith(value, found);
    }
    return undefined;
  }
  const tag = tagOf(value);
  if (tag === 'Date' && Number.isNaN((value as Date).getTime())) {
    return { path, problem: 'it is an invalid Date, for which JSON has null' };
  }
  // A stub of another Worker answers to every name.
  const isRemote = /^(Js)?Rpc/.test(tag);
  if (!isRemote && typeof Reflect.get(value, 'toJSON') === 'function') return undefined;
  const instead = isRemote ? INSTEAD.Promise : Object.hasOwn(INSTEAD, tag) ? INSTEAD[tag] : undefined;
  if (instead !== undefined) return { path, problem: `it is a ${tag}, which JSON empties: ${instead}` };
  if (isTypedArray(value)) return undefined;
  const names = Object.keys(value);
  if (names.length === 0 && !isPlain(value, tag) && !BOXED.includes(tag)) {
    return { path, problem: `it is a ${nameOf(value, tag)}, of which JSON keeps nothing: pass a plain object` };
  }
  for (const name of names) {
    const member: unknown = Reflect.get(value, name);
    const found = isHarmless(member) ? undefined : find(member, pathOf(path, name), seen);
    if (found) return refusedWith(value, found);
  }
  return undefined;
}

/** No one awaits the promises beside it: one that rejects would end the process. */
function refusedWith(container: object, found: Emptied): Emptied {
  for (const member of Object.values(container)) ignoreRejection(member);
  return found;
}

/** Most members are texts and whole numbers: paths are written for the others only. */
function isHarmless(value: unknown): boolean {
  const type = typeof value;
  return (
    type === 'string' || type === 'boolean' || value === undefined || value === null || Number.isSafeInteger(value)
  );
}

/** Some programs give integers a JSON of their own. */
const hasJsonOfBigInt = (): boolean => typeof Reflect.get(BigInt.prototype, 'toJSON') === 'function';

/** Longest name of a member in a path, in characters. */
const MAX_NAME = 64;

function pathOf(path: string, name: string): string {
  const short = name.slice(0, MAX_NAME);
  if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(short)) return `${path}[${JSON.stringify(short)}]`;
  return path === '' ? short : `${path}.${short}`;
}

/** Values that JSON writes as what is in them. */
const BOXED = ['String', 'Number', 'Boolean', 'BigInt'];

const isTypedArray = (value: object): boolean => ArrayBuffer.isView(value) && tagOf(value) !== 'DataView';

function isPlain(value: object, tag: string): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  // Of whichever realm: above its root there is nothing.
  return prototype === null || (Object.getPrototypeOf(prototype) === null && tag === 'Object');
}

function nameOf(value: object, tag: string): string {
  return tag === 'Object' ? (value.constructor?.name ?? tag) : tag;
}

/** Why a value is refused, in words. @param what names the whole value. @returns undefined: it is all right */
export function emptiedProblem(value: unknown, what: string): string | undefined {
  const found = findEmptied(value, '');
  if (!found) return undefined;
  const where = found.path === '' ? '' : `at ${found.path} `;
  return `${what} is not JSON: ${where}${found.problem}.`;
}
