import { isObject } from '../../job/envelope/fields';
import { own } from '../../job/own';
import { addMember, readJson } from './json-text';

export type Wanted = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Adds missing members. @returns the new text, and the new members */
export function extendPackage(
  text: string,
  wanted: Wanted,
): { text: string; added: [section: string, name: string][] } {
  const values = readJson(text, 'package.json');
  const added: [section: string, name: string][] = [];
  let extended = text;
  for (const [section, members] of Object.entries(wanted)) {
    const missing = Object.entries(members).filter(([name]) => !has(values, section, name));
    if (missing.length === 0) continue;
    if (own(values, section) === undefined) extended = addMember(extended, [], section, Object.fromEntries(missing));
    else for (const [name, value] of missing) extended = addMember(extended, [section], name, value);
    for (const [name] of missing) added.push([section, name]);
  }
  return { text: extended, added };
}

/** A dependency counts wherever it stands. */
function has(values: Record<string, unknown>, section: string, name: string): boolean {
  const sections = /^(dev)?dependencies$/i.test(section) ? ['dependencies', 'devDependencies'] : [section];
  return sections.some((one) => {
    const members = own(values, one);
    return isObject(members) && Object.hasOwn(members, name);
  });
}

/** A folder's name as that of a package and a Worker. */
export function packageName(folderName: string): string {
  const name = folderName.toLowerCase().replace(/[^a-z0-9-]+/g, '-');
  return name.replace(/^-+|-+$/g, '').slice(0, 54) || 'my-queue';
}
