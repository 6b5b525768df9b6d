/**
 * Bundles the command-line program with the libraries it uses, so that an install of the package brings none of them. Their
 * licences ask for their texts to go along.
 */
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { repositoryOf } from './repository.mjs';

/** How modules of the program are bundled, with the libraries they use. */
export const BUNDLE = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // The other form of some packages asks for their files at run time.
  mainFields: ['module', 'main'],
  legalComments: 'none',
  // Libraries written for require() find it here.
  banner: {
    js: "import { createRequire as createNodeRequire } from 'node:module';\nconst require = createNodeRequire(import.meta.url);",
  },
  logLevel: 'warning',
};

/**
 * Builds one program. @returns the names of the packages in it
 * @param {string} root of the project
 * @param {string} entry below `src/cli`
 * @param {string} outfile
 */
export async function buildCli(root, entry, outfile) {
  const { metafile } = await build({
    ...BUNDLE,
    absWorkingDir: root,
    entryPoints: [join(root, 'src/cli', entry)],
    outfile,
    minify: true,
    metafile: true,
    banner: { js: `#!/usr/bin/env node\n${BUNDLE.banner.js}` },
  });
  return packagesIn(Object.keys(metafile.inputs));
}

/** The packages that were bundled, by the paths of their files. */
export function packagesIn(paths) {
  const names = paths.flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  return [...new Set(names)].sort();
}

/** Writes the licences of bundled packages beside the bundle. */
export function writeLicences(root, packages, file) {
  const texts = packages.map((name) => {
    const folder = join(root, 'node_modules', name);
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    if (!['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'Unlicense'].includes(license)) {
      throw new Error(`${name} has the licence ${license}: may it be bundled?`);
    }
    const found = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = found && existsSync(join(folder, found)) ? readFileSync(join(folder, found), 'utf8').trim() : '';
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  writeFileSync(file, texts.join(`\n${'-'.repeat(72)}\n\n`));
}

/** What npm shows of `create-tocsin`. */
const CREATE_README = `# create-tocsin

Starts a Cloudflare Worker with a durable job queue, or adds one to the Worker in a folder:

\`\`\`sh
npm create tocsin@latest shop
\`\`\`

It does what \`npx tocsin init\` does. The queue itself is the package [tocsin](https://www.npmjs.com/package/tocsin).
`;

/** Builds the package `create-tocsin` into dist-create/: `npm create tocsin` runs it. */
export async function buildCreate(root) {
  const folder = join(root, 'dist-create');
  rmSync(folder, { recursive: true, force: true });
  const packages = await buildCli(root, 'create.ts', 'dist-create/index.js');
  writeLicences(root, packages, join(folder, 'LICENSES.txt'));
  const { version, license, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const description = 'Starts a Cloudflare Worker with a durable job queue, or adds one to yours: npm create tocsin';
  const bin = { 'create-tocsin': 'index.js' };
  const about = { name: 'create-tocsin', version, description, license, ...repositoryOf(process.env) };
  const contents = { ...about, type: 'module', engines, bin };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(contents, null, 2)}\n`);
  writeFileSync(join(folder, 'README.md'), CREATE_README);
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
}
