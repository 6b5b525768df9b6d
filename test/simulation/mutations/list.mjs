/** Known defects, as edits of the sources that put them back: see `list.json`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const LIST = fileURLToPath(new URL('list.json', import.meta.url));

/**
 * @param names parts of the names of those that are wanted, or files that have others; none: all of the list
 * @returns `{ name, edits: [{ file, find, replace }], how, test, trees }`: what a history must do to meet it says `how`; `test` is a
 *   file that finds it where no history of queues can; with `trees` histories of trees of jobs find it
 */
export function readMutations(names = []) {
  const files = names.filter((name) => name.endsWith('.json'));
  const wanted = names.filter((name) => !name.endsWith('.json'));
  const given = files.flatMap((file) => JSON.parse(readFileSync(file, 'utf8')));
  if (files.length > 0 && wanted.length === 0) return given;
  const all = JSON.parse(readFileSync(LIST, 'utf8'));
  const has = ({ name }) =>
    wanted.length === 0 || wanted.some((part) => name.toLowerCase().includes(part.toLowerCase()));
  return [...given, ...all.filter(has)];
}

/** The files that a mutation changes, with the defect in them. @throws when the text of an edit is not there exactly once */
export function mutated({ name, edits }, root) {
  const texts = new Map();
  for (const { file, find, replace } of edits) {
    const text = texts.get(file) ?? readFileSync(join(root, file), 'utf8');
    const [before, after, ...more] = text.split(find);
    if (after === undefined) throw new Error(`${name}: ${file} does not have ${JSON.stringify(find)}`);
    if (more.length > 0) throw new Error(`${name}: ${file} has ${JSON.stringify(find)} several times`);
    texts.set(file, `${before}${replace}${after}`);
  }
  return texts;
}
