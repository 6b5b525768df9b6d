/** Adds to JSON with comments so that everything else stays as its author wrote it. */
import { findNodeAtLocation, type Node, type ParseError, parse, parseTree, printParseErrorCode } from 'jsonc-parser';
import { isObject } from '../../job/envelope/fields';
import { CliError } from '../failure';

const LENIENT = { allowTrailingComma: true };

/** Reads JSON with comments. @throws {CliError} naming the file and the line */
export function readJson(text: string, path: string): Record<string, unknown> {
  const errors: ParseError[] = [];
  const value: unknown = parse(text, errors, LENIENT);
  const [error] = errors;
  if (error) {
    const line = text.slice(0, error.offset).split('\n').length;
    const message = `${path}, line ${line}: ${printParseErrorCode(error.error)}.`;
    throw new CliError(message, 'Correct it, then run this command again.');
  }
  if (!isObject(value)) throw new CliError(`${path} is not an object.`);
  return value;
}

export const addMember = (text: string, path: readonly string[], name: string, value: unknown): string =>
  addTo(text, path, (indent) => `${JSON.stringify(name)}: ${pretty(value, indent, text)}`);

export const addItem = (text: string, path: readonly string[], value: unknown): string =>
  addTo(text, path, () => inline(value));

/** @param write the new child, for the indentation of its line */
function addTo(text: string, path: readonly string[], write: (indent: string) => string): string {
  const tree = parseTree(text, [], LENIENT);
  const parent = tree && findNodeAtLocation(tree, [...path]);
  if (!parent) throw new Error(`There is nothing at ${path.join('.')}.`);
  const eol = eolOf(text);
  const last = parent.children?.at(-1);
  if (last === undefined) {
    const indent = lineIndent(text, parent.offset);
    const inner = indent + unitOf(text);
    const at = parent.offset + 1;
    const close = text.slice(at, parent.offset + parent.length - 1).trim() === '' ? eol + indent : '';
    return `${text.slice(0, at)}${eol}${inner}${write(inner)}${close}${text.slice(at).replace(/^\s*(?=[\]}])/, '')}`;
  }
  const end = last.offset + last.length;
  if (!beginsLine(text, last))
    return `${text.slice(0, end)}, ${write(lineIndent(text, last.offset))}${text.slice(end)}`;
  const indent = lineIndent(text, last.offset);
  // A comment behind the last child stays with it, and a trailing comma stays a trailing comma.
  const [whole, comma = '', comment] = /^(,?)([ \t]*(?:\/\/[^\r\n]*)?)/.exec(text.slice(end)) ?? ['', '', ''];
  const rest = text.slice(end + whole.length);
  return `${text.slice(0, end)},${comment}${eol}${indent}${write(indent)}${comma}${rest}`;
}

const beginsLine = (text: string, node: Node): boolean => /(^|\n)[ \t]*$/.test(text.slice(0, node.offset));

const lineIndent = (text: string, offset: number): string =>
  /[ \t]*/.exec(text.slice(text.lastIndexOf('\n', offset - 1) + 1))?.[0] ?? '';

const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');

const unitOf = (text: string): string => /^([ \t]+)\S/m.exec(text)?.[1] ?? '  ';

/** Objects of the file's top level over several lines, everything else on one. */
function pretty(value: unknown, indent: string, text: string): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return inline(value);
  return JSON.stringify(value, null, unitOf(text)).replaceAll('\n', eolOf(text) + indent);
}

/** On one line, with spaces: `{ "tag": "v2", "new_sqlite_classes": ["A", "B"] }`. */
function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${inline(member)}`);
  return `{ ${members.join(', ')} }`;
}
