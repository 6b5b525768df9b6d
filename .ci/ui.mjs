/**
 * Builds what the Worker embeds, as modules that are not committed: the dashboard of src/ui, src/http/ui/built.js, the document
 * of the API, src/http/openapi/built.js, and the tools for agents, src/mcp/built.js.
 * `npm ci` runs this as `prepare`, and so does whatever is about to bundle the Worker: wrangler, vitest, the package.
 * Names of files carry a hash of what is in them, so that browsers may keep them for good.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, transform } from 'esbuild';
import { acceptedIn } from './accepted.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const BUILT = join(root, 'src/http/ui/built.js');
const BUILT_DOCUMENT = join(root, 'src/http/openapi/built.js');
const BUILT_TOOLS = join(root, 'src/mcp/built.js');

const TYPES = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const ENTRIES = { app: 'src/ui/main.tsx', theme: 'src/ui/theme-first.ts', styles: 'src/ui/styles/index.css' };

/**
 * Keeps the frame of the dashboard in one chunk: without this the bundler makes a small one for each set of pages that share a
 * module with it. Whatever is loaded later therefore imports the frame, which is there already.
 */
const ONE_FRAME = {
  name: 'one-frame',
  setup({ onLoad }) {
    onLoad(
      { filter: /src[\\/]ui\/(pages\/[^/]+\/index\.tsx|components\/(plot\.tsx|help\.tsx|login\.tsx))$/ },
      async ({ path }) => ({
        contents: `import ${JSON.stringify(join(root, 'src/ui/app.tsx'))};\n${await readFile(path, 'utf8')}`,
        loader: path.endsWith('.tsx') ? 'tsx' : 'ts',
      }),
    );
  },
};

/** `import './page.css'` adds the style sheet to the document when the module that imports it is loaded. */
const STYLES = {
  name: 'styles',
  setup({ onLoad }) {
    onLoad({ filter: /src[\\/]ui[\\/](pages|components)[\\/].*\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { loader: 'css', minify: true });
      const adopt = JSON.stringify(join(root, 'src/ui/core/styles.ts'));
      return { contents: `import { adopt } from ${adopt};\nadopt(${JSON.stringify(code)});`, loader: 'js' };
    });
  },
};

/**
 * Builds the dashboard.
 * @returns {Promise<{ shell: string, assets: Record<string, { type: string, body: string }>, first: string[], inputs: string[] }>}
 * `shell`: the page, `first`: the assets that it needs before it shows anything, `inputs`: the files it was made from
 */
export async function buildUi() {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: Object.entries(ENTRIES).map(([out, path]) => ({ in: path, out })),
    outdir: 'assets',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    target: ['es2022', 'chrome123', 'firefox125', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    plugins: [ONE_FRAME, STYLES],
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'warning',
  });
  const assets = {};
  for (const { path, text } of outputFiles) {
    const type = TYPES[extname(path)];
    if (!type) throw new Error(`${path} has a type that the dashboard's route does not know`);
    assets[basename(path)] = { type, body: text };
  }
  const icon = readFileSync(join(root, 'src/ui/bell.svg'), 'utf8');
  const iconName = `bell-${hashOf(icon)}.svg`;
  assets[iconName] = { type: TYPES['.svg'], body: icon };

  const nameOf = (entry) =>
    basename(Object.keys(metafile.outputs).find((path) => metafile.outputs[path].entryPoint === ENTRIES[entry]));
  const scripts = staticImports(metafile, nameOf('app'));
  const shell = readFileSync(join(root, 'src/ui/index.html'), 'utf8')
    .replace('%ICON%', iconName)
    .replace('%STYLES%', nameOf('styles'))
    .replace('%THEME%', nameOf('theme'))
    .replace('%APP%', nameOf('app'))
    .replace(
      '%PRELOADS%',
      scripts
        .slice(1)
        .map((name) => `<link rel="modulepreload" href="assets/${name}">`)
        .join(''),
    );
  const first = [...scripts, nameOf('styles'), nameOf('theme')];
  return { shell, assets, first, inputs: Object.keys(metafile.inputs) };
}

/** A script and all that it imports before it runs. */
function staticImports({ outputs }, entry) {
  const found = new Set([entry]);
  for (const name of found) {
    const path = Object.keys(outputs).find((output) => basename(output) === name);
    for (const { path: imported, kind } of outputs[path].imports) {
      if (kind === 'import-statement') found.add(basename(imported));
    }
  }
  return [...found];
}

function hashOf(text) {
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

/** Writes a module, unless it is there as it should be: who watches it is not woken for nothing. */
function write(path, text) {
  if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text);
}

/** Writes a module that exports these values. @param source what they were made from */
function writeModule(path, source, values) {
  const lines = Object.entries(values).map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};`);
  write(path, [`// Made by .ci/ui.mjs from ${source}.`, ...lines, ''].join('\n'));
}

/** Builds what the Worker embeds, and writes the modules. @returns {Promise<string[]>} the files of the dashboard */
export async function writeBuilt() {
  const { shell, assets, first, inputs } = await buildUi();
  writeModule(BUILT, 'src/ui', { shell, version: hashOf(shell), assets, first });
  const document = JSON.parse(readFileSync(join(root, 'docs/reference/openapi.json'), 'utf8'));
  const values = { document: JSON.stringify(document), accepted: acceptedIn(document) };
  writeModule(BUILT_DOCUMENT, 'docs/reference/openapi.json', values);
  const tools = JSON.parse(readFileSync(join(root, 'docs/reference/mcp.json'), 'utf8'));
  writeModule(BUILT_TOOLS, 'docs/reference/mcp.json', tools);
  return inputs;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await writeBuilt();
