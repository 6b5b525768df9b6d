/** The TypeScript that the documents show of the client: found, type-checked, and made ready to run. */
import { execFile } from 'node:child_process';
import { globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { lexer, walkTokens } from 'marked';
import { root } from './dev.mjs';

const CLIENT = join(root, 'src/client/index.ts');
const HANDLER = join(root, 'src/handler/index.ts');
const QUEUE = join(root, 'src/library/index.ts');

/** Packages of others that snippets use. */
const OTHERS = ['@opentelemetry/api', 'standardwebhooks', 'zod'];

/** What the documents take for given. */
const GIVEN = `
declare global {
  const tocsin: import('tocsin/client').TocsinClient;
  const env: { TOCSIN: import('tocsin/client').ServiceLike; TOCSIN_KEY: string };
  const process: { env: Record<string, string> };
}
`;

/** A part of a project of several files, which a test of its page compiles as a whole. */
const BESIDE = /from '\.{1,2}\//;

/** Has to do with the client, or with the queue as `tocsin`. */
const OF_CLIENT = /\btocsin\b.*[.=]|TocsinClient/;

/** Another module that imports a library. The page about tests has a test of its own, with the types of Vitest. */
const IS_MODULE = /from 'tocsin\/(?:client|handler|queue)'/;
const TESTED = 'docs/guides/testing.md';

/**
 * Every block of TypeScript that has to do with the client and stands on its own, in the order of the page.
 * @returns {{ name: string, text: string }[]} names are like `queues-1`
 */
export function snippetsOf(path) {
  return typeScriptOf(path)
    .filter((text) => OF_CLIENT.test(text))
    .map((text, index) => ({ name: `${basename(path, '.md')}-${index + 1}`, text }));
}

/** Every other block that is a whole module, such as handlers. */
export function modulesOf(path) {
  return typeScriptOf(path)
    .filter((text) => !OF_CLIENT.test(text) && IS_MODULE.test(text) && path !== TESTED)
    .map((text, index) => ({ name: `${basename(path, '.md')}-module-${index + 1}`, text }));
}

function typeScriptOf(path) {
  const blocks = [];
  walkTokens(lexer(readFileSync(join(root, path), 'utf8')), (token) => {
    if (token.type === 'code' && token.lang === 'ts' && !BESIDE.test(token.text)) blocks.push(token.text);
  });
  return blocks;
}

/** The documents, each by its path. */
export function documents() {
  // Folders that begin with a dot are no sections: docs/.site builds the site.
  const pages = globSync('**/*.md', { cwd: join(root, 'docs') }).map((path) => `docs/${path.replaceAll(sep, '/')}`);
  const about = readdirSync(join(root, '.github')).filter((path) => path.endsWith('.md'));
  return ['README.md', ...about.map((path) => `.github/${path}`), ...pages.sort()];
}

/**
 * Type-checks snippets, each as a module of its own: those of Workers that hold the queue with the types of Workers, all
 * others with those of any platform.
 * @returns {Promise<string>} what the compiler says; empty when it is content
 */
export async function typeCheck(folder, snippets) {
  const inside = snippets.filter(({ text }) => text.includes("'tocsin/queue'"));
  const others = snippets.filter((snippet) => !inside.includes(snippet));
  const said = await compile(join(folder, 'any'), others, { lib: ['ES2023', 'ES2024.String', 'DOM'], types: [] }, []);
  const types = [join(root, 'node_modules/@cloudflare/workers-types/experimental')];
  return said + (await compile(join(folder, 'inside'), inside, { types }, [join(root, 'src/sql.d.ts')]));
}

async function compile(folder, snippets, options, declarations) {
  mkdirSync(folder, { recursive: true });
  // A top-level await wants a module.
  for (const { name, text } of snippets) writeFileSync(join(folder, `${name}.ts`), moduleOf(text));
  writeFileSync(join(folder, 'given.d.ts'), `${GIVEN}\nexport {};\n`);
  const compilerOptions = {
    ...JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')).compilerOptions,
    ...options,
    // A snippet shows what there is to get; it need not use it.
    noUnusedLocals: false,
    paths: {
      ...{ 'tocsin/client': [CLIENT], 'tocsin/handler': [HANDLER], 'tocsin/queue': [QUEUE] },
      ...Object.fromEntries(OTHERS.map((name) => [name, [join(root, 'node_modules', name)]])),
    },
  };
  const include = ['*.ts', ...declarations];
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  return new Promise((resolve) => {
    execFile(process.execPath, [tsc, '-p', folder], (error, stdout, stderr) => {
      resolve(error ? `${stdout}${stderr}` || String(error) : '');
    });
  });
}

/**
 * Bundles snippets so that each runs when it is imported, with `tocsin` as a global.
 * @returns {Promise<{ client: object, run: (name: string) => Promise<unknown> }>} the client library they share
 */
export async function prepare(folder, snippets) {
  mkdirSync(folder, { recursive: true });
  for (const { name, text } of snippets) writeFileSync(join(folder, `${name}.ts`), moduleOf(text));
  const outdir = join(folder, 'out');
  await build({
    entryPoints: {
      client: CLIENT,
      ...Object.fromEntries(snippets.map(({ name }) => [name, join(folder, `${name}.ts`)])),
    },
    outdir,
    bundle: true,
    // One copy of the library: a snippet recognises the errors of the client it is given.
    splitting: true,
    format: 'esm',
    target: 'es2022',
    outExtension: { '.js': '.mjs' },
    alias: { 'tocsin/client': CLIENT, 'tocsin/handler': HANDLER },
    logLevel: 'error',
  });
  const load = (name) => import(pathToFileURL(join(outdir, `${name}.mjs`)).href);
  return { client: await load('client'), run: load };
}

function moduleOf(text) {
  return `${text}\nexport {};\n`;
}
