/** Stacks of jobs in `tocsin dev`: places in wrangler's bundle become places in the sources that they were made of. */
import { readFileSync, statSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A stack in an answer, and when it was recorded. */
const STACK = /"stack":("(?:[^"\\]|\\.)*")(?=[\s\S]{0,20000}?"occurred_at":"([^"]+)")/g;

/** A place in a bundle of `wrangler dev`, as the runtime has it. */
const PLACE = /(file:\/\/[^\s()]+\/\.wrangler\/tmp\/[^\s()]+):(\d+):(\d+)/g;

/** Stacks that are remembered: those of before an edit keep the places they were given. */
const REMEMBERED = 500;

/** A function for JSON of the queue. @param folder where the project is: its files are named from there */
export function sourceFrames(folder: string): (json: string) => string {
  const given = new Map<string, string>();
  const maps = new Map<string, { at: number; map: SourceMap }>();
  const mapOf = (bundle: string, before: number): SourceMap | undefined => {
    try {
      const { mtimeMs: at } = statSync(`${bundle}.map`);
      // What was recorded before the bundle was written has places of another.
      if (at > before) return undefined;
      const known = maps.get(bundle);
      if (known?.at === at) return known.map;
      const map = new SourceMap(JSON.parse(readFileSync(`${bundle}.map`, 'utf8')));
      maps.set(bundle, { at, map });
      return map;
    } catch {
      return undefined;
    }
  };
  const place = (found: string, url: string, line: string, column: string, before: number): string => {
    const bundle = fileURLToPath(url);
    const entry = mapOf(bundle, before)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (!entry || !('originalSource' in entry)) return found;
    const file = relative(folder, resolve(dirname(bundle), entry.originalSource));
    return `${file.split(sep).join('/')}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  };
  return (json) =>
    json.replace(STACK, (whole, text: string, at: string) => {
      if (!text.includes('/.wrangler/tmp/')) return whole;
      const key = `${at} ${text}`;
      const stack = JSON.parse(text) as string;
      const mapped =
        given.get(key) ??
        stack.replace(PLACE, (found, url, line, column) => place(found, url, line, column, Date.parse(at)));
      if (mapped !== stack) given.set(key, mapped);
      if (given.size > REMEMBERED) given.delete(given.keys().next().value as string);
      return `"stack":${JSON.stringify(mapped)}`;
    });
}
