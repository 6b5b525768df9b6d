/** What the code itself says, for documents that repeat it: its modules loaded into Node, and constants that no module exports. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { root } from './dev.mjs';

/** Stands for the modules of the runtime, which Node does not have, and for what is built: only lists are read here. */
const RUNTIME = `
class Stub {}
export { Stub as DurableObject, Stub as RpcTarget, Stub as WorkerEntrypoint };
export const env = {};
export const exports = {};
`;
const PAGE =
  "export const shell = '', version = '', assets = {}, first = [], document = '', accepted = {}, tools = [], jobMembers = [];";

const runtime = {
  name: 'runtime',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^cloudflare:/ }, ({ path }) => ({ path, namespace: 'runtime' }));
    onResolve({ filter: /\/built$/ }, ({ path }) => ({ path, namespace: 'page' }));
    onLoad({ filter: /./, namespace: 'runtime' }, () => ({ contents: RUNTIME }));
    onLoad({ filter: /./, namespace: 'page' }, () => ({ contents: PAGE }));
  },
};

/**
 * Imports modules of `src` as one.
 * @param {string[]} paths below `src`
 */
export function load(...paths) {
  return loadText(paths.map((path) => `export * from ${JSON.stringify(`./${path}`)};`).join('\n'));
}

/**
 * Imports a module that stands in no file, as if it stood in `src`.
 * @param {string} contents
 */
export async function loadText(contents) {
  const folder = mkdtempSync(join(tmpdir(), 'tocsin-source-'));
  const outfile = join(folder, 'module.mjs');
  try {
    await build({
      stdin: { contents, resolveDir: join(root, 'src'), loader: 'ts' },
      outfile,
      bundle: true,
      format: 'esm',
      platform: 'node',
      loader: { '.sql': 'text' },
      plugins: [runtime],
      logLevel: 'error',
    });
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The text of a file of the project. */
export const read = (path) => readFileSync(join(root, path), 'utf8');

/**
 * The number that a constant has, whether it is exported or not.
 * @param {string} path of the module, below `src`
 * @param {string} name
 * @returns {number}
 */
export function constant(path, name) {
  const text = read(join('src', path));
  const [, written] = new RegExp(`\\bconst ${name}(?::[^=]+)? = ([^;]+);`).exec(text) ?? [];
  if (written === undefined) {
    const [, names, from] = new RegExp(`import \\{([^}]*\\b${name}\\b[^}]*)\\} from '(\\.[^']+)'`).exec(text) ?? [];
    if (names === undefined) throw new Error(`src/${path} has no constant ${name}`);
    return constant(moduleAt(join(dirname(path), from)), name);
  }
  const value = written.replaceAll('_', (_, at) => (/\d/.test(written[at - 1]) ? '' : '_'));
  const known = value.replace(/[A-Z][A-Z0-9_]*/g, (other) => String(constant(path, other)));
  if (!/^[\d\s.*+()e/-]+$/.test(known)) throw new Error(`src/${path}: ${name} is not a number: ${written}`);
  return Number(new Function(`return ${known}`)());
}

function moduleAt(path) {
  return [`${path}.ts`, join(path, 'index.ts')].find((file) => existsSync(join(root, 'src', file)));
}

/**
 * The members of an interface or a type of object, as written in the file; those of another that it extends are left out.
 * @param {string} path of the module, below `src`
 * @param {string} name
 * @returns {string[]}
 */
export function membersOf(path, name) {
  const [, body] =
    new RegExp(`(?:interface|type) ${name}\\b[^{]*\\{([\\s\\S]*?)\\n\\}`).exec(read(join('src', path))) ?? [];
  if (body === undefined) throw new Error(`src/${path} has no type ${name}`);
  return Array.from(body.matchAll(/^ {2}(?:readonly )?(\w+)\??[:(<]/gm), ([, member]) => member);
}
