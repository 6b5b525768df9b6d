/** The main module of an existing Worker, with the queue added where that is safe. */
import { type ParserPlugin, parse } from '@babel/parser';
import type { ExportDefaultDeclaration, Expression, File, Statement } from '@babel/types';
import { OBJECT_CLASSES, QUEUE_EXPORTS } from './toolchain';

export type Adapted =
  | { kind: 'changed'; text: string; added: string[] }
  | { kind: 'complete' }
  /** It was not changed: `lines` have to be added by hand. */
  | { kind: 'manual'; why: string; lines: string };

const PACKAGE = 'tocsin/queue';

export const exportLine = (names: readonly string[] = QUEUE_EXPORTS): string =>
  `export { ${names.join(', ')} } from '${PACKAGE}';`;

/**
 * Adds the import of the deployment, the exports of its classes, and a default export that serves both.
 * @param path its extension tells the language @param deployment import specifier, such as `./tocsin`
 */
export function adaptModule(text: string, path: string, deployment: string): Adapted {
  let file: File;
  try {
    file = parse(text, { sourceType: 'module', plugins: pluginsFor(path) });
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error);
    return manual(`it cannot be parsed: ${what}`, deployment);
  }
  const { body } = file.program;
  const found = body.find((statement) => statement.type === 'ExportDefaultDeclaration');
  const missing = missingExports(body);
  const own = OBJECT_CLASSES.find((name) => missing.includes(name) && declares(body, name));
  if (own !== undefined) return manual(`it has a ${own} of its own, and one Worker cannot have two`, deployment);
  const wrapped = found !== undefined && isWrapped(found);
  if (missing.length === 0 && wrapped) return { kind: 'complete' };

  const edits: { at: number; insert: string }[] = [];
  const added: string[] = [];
  const lines: string[] = [];
  if (!wrapped) {
    const cannot = found === undefined ? 'it has no default export' : unsafe(found, body);
    if (found === undefined || cannot !== undefined) return manual(cannot ?? '', deployment);
    if (declares(body, 'tocsin')) return manual('it uses the name tocsin for something else', deployment);
    const { start, end } = found.declaration;
    edits.push({ at: start ?? 0, insert: 'tocsin.worker(' }, { at: end ?? 0, insert: ')' });
    added.push('its default export also serves the queue');
    lines.push(`import { tocsin } from '${deployment}';`);
  }
  if (missing.length > 0) {
    lines.push('', exportLine(missing));
    added.push(
      `it exports ${missing.length === QUEUE_EXPORTS.length ? 'the classes of the queue' : missing.join(', ')}`,
    );
  }
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const after = body.filter(({ type }) => type === 'ImportDeclaration').at(-1);
  edits.push(
    after
      ? { at: after.end ?? 0, insert: eol + lines.join(eol) }
      : { at: startOf(body[0]), insert: lines.join(eol).trimStart() + eol + eol },
  );
  return { kind: 'changed', text: applied(text, edits), added };
}

function manual(why: string, deployment: string): Adapted {
  const lines = [
    `import { tocsin } from '${deployment}';`,
    exportLine(),
    'export default tocsin.worker(/* what you export now: an object or an instance with fetch, scheduled, queue …, or a class */);',
  ];
  return { kind: 'manual', why, lines: lines.join('\n') };
}

function applied(text: string, edits: readonly { at: number; insert: string }[]): string {
  const last = [...edits].sort((a, b) => b.at - a.at);
  return last.reduce((result, { at, insert }) => result.slice(0, at) + insert + result.slice(at), text);
}

function pluginsFor(path: string): ParserPlugin[] {
  if (/\.tsx$/.test(path)) return ['typescript', 'jsx', 'decorators'];
  return /\.[cm]?ts$/.test(path) ? ['typescript', 'decorators'] : ['jsx', 'decorators'];
}

function missingExports(body: readonly Statement[]): string[] {
  const exported = new Set<string>();
  for (const statement of body) {
    if (statement.type === 'ExportAllDeclaration' && statement.source.value === PACKAGE) return [];
    if (statement.type !== 'ExportNamedDeclaration' || statement.source?.value !== PACKAGE) continue;
    for (const specifier of statement.specifiers) {
      exported.add(specifier.exported.type === 'Identifier' ? specifier.exported.name : specifier.exported.value);
    }
  }
  return QUEUE_EXPORTS.filter((name) => !exported.has(name));
}

/** `export default tocsin.worker(…)`, whatever the deployment is called. */
function isWrapped({ declaration }: ExportDefaultDeclaration): boolean {
  if (declaration.type !== 'CallExpression' || declaration.callee.type !== 'MemberExpression') return false;
  const { property } = declaration.callee;
  return property.type === 'Identifier' && property.name === 'worker';
}

/** Why the default export cannot be wrapped; undefined: it can. */
function unsafe({ declaration }: ExportDefaultDeclaration, body: readonly Statement[]): string | undefined {
  const value = plain(declaration as Expression);
  switch (value.type) {
    case 'ObjectExpression':
    case 'CallExpression':
    case 'NewExpression':
      return undefined;
    case 'Identifier':
      return isTaken(value.name, body)
        ? undefined
        : `its default export ${value.name} is a function, or a class that extends nothing`;
    default:
      return 'its default export is a class or a function';
  }
}

const plain = (expression: Expression): Expression =>
  expression.type === 'TSSatisfiesExpression' || expression.type === 'TSAsExpression'
    ? plain(expression.expression)
    : expression;

/** Does `worker()` accept this name's value, as far as the module shows? Imports are judged when it loads. */
function isTaken(name: string, body: readonly Statement[]): boolean {
  for (const statement of body) {
    const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (declared?.type === 'ClassDeclaration' && declared.id?.name === name) return declared.superClass != null;
    if (declared?.type === 'FunctionDeclaration' && declared.id?.name === name) return false;
    if (declared?.type !== 'VariableDeclaration') continue;
    for (const { id, init } of declared.declarations) {
      if (id.type !== 'Identifier' || id.name !== name || !init) continue;
      const value = plain(init);
      if (value.type === 'ClassExpression') return value.superClass != null;
      return !['FunctionExpression', 'ArrowFunctionExpression'].includes(value.type);
    }
  }
  return true;
}

/** Does the module declare or import something of this name at its top? */
const declares = (body: readonly Statement[], name: string): boolean =>
  body.some((statement) => {
    if (statement.type === 'ImportDeclaration') return statement.specifiers.some(({ local }) => local.name === name);
    const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (declared?.type === 'ClassDeclaration' || declared?.type === 'FunctionDeclaration') {
      return declared.id?.name === name;
    }
    if (declared?.type === 'VariableDeclaration') {
      return declared.declarations.some(({ id }) => id.type === 'Identifier' && id.name === name);
    }
    return (
      statement.type === 'ExportNamedDeclaration' &&
      statement.source?.value !== PACKAGE &&
      statement.specifiers.some(({ exported }) => exported.type === 'Identifier' && exported.name === name)
    );
  });

/** Where a statement begins, with the comments before it. */
const startOf = (statement: Statement | undefined): number =>
  statement?.leadingComments?.[0]?.start ?? statement?.start ?? 0;

/** How the module writes relative imports: with the extension or without. */
export function importOf(text: string, name: string, extension: string): string {
  const written = /from\s*['"]\.{1,2}\/[^'"]*?(\.[cm]?[jt]sx?)['"]/.exec(text)?.[1];
  if (written === undefined) return `./${name}`;
  return `./${name}${/ts/.test(written) ? extension : extension.replace('ts', 'js')}`;
}
