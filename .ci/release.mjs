/**
 * `npm run release -- FOLDER TAG`: packs `tocsin` and `create-tocsin` for the release that the tag names, and writes its part of
 * the changelog beside them as notes.md. Refuses a tag of another version, and a version that the changelog does not date.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = join(import.meta.dirname, '..');
const [folder, tag] = process.argv.slice(2);
if (!folder || !tag || !process.env.npm_execpath) fail('Run this as npm run release -- FOLDER TAG.');

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
if (tag !== `v${version}`) fail(`The tag is ${tag}, but package.json has the version ${version}: tag it v${version}.`);

const sections = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^(?=## \[)/m);
const [heading, ...notes] = sections.find((section) => section.startsWith(`## [${version}]`))?.split('\n') ?? [];
if (!/ - \d{4}-\d{2}-\d{2}$/.test(heading ?? '')) {
  fail(`CHANGELOG.md has no date for ${version}: its heading must be "## [${version}] - YYYY-MM-DD".`);
}

const destination = resolve(process.env.INIT_CWD ?? '.', folder);
mkdirSync(destination, { recursive: true });
pack(); // also builds the other
pack('dist-create');
writeFileSync(join(destination, 'notes.md'), `${notes.join('\n').trim()}\n`);
console.log(`Packed ${version} in ${destination}`);

/** Packs the project, or a folder of it. @param {...string} what */
function pack(...what) {
  const args = ['pack', ...what.map((path) => `./${path}`), '--silent', '--pack-destination', destination];
  // npm as a script, because Windows has it as a batch file, which only a shell runs.
  execFileSync(process.execPath, [process.env.npm_execpath, ...args], { cwd: root, stdio: 'inherit' });
}

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(message);
  process.exit(2);
}
