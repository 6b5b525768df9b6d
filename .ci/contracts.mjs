/**
 * What the contracts of `src/contract` declare, for the documents that derive from them: which types travel on each route, and the
 * JSON Schemas of these types, with their comments.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createFormatter, createParser, SchemaGenerator } from 'ts-json-schema-generator';
import { loadText } from '../test/docs/source.mjs';

/** The compiler's own API, which the generator brings along. */
export const ts = createRequire(createRequire(import.meta.url).resolve('ts-json-schema-generator'))('typescript');

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');
export const CONTRACTS = join(root, 'src/contract');

const { SECOND_NAMES } = await loadText(`export { SECOND_NAMES } from './ojs/names';`);

/** Members of an exchange that are messages, and travel on no request or answer. */
const MESSAGES = new Set(['fromClient', 'fromServer']);

/** What the server says of itself. */
const ENGINE = [
  `export { ROUTES } from './http/routes';`,
  `export { VERSION } from './config';`,
  `export { OPTION_NAMES } from './job/options';`,
  `export { optionSchema } from './job/envelope/option-readers';`,
  `export { TYPE_SCHEMA } from './job/envelope/names';`,
  `export { describe, readUuidV7 } from './job/envelope/fields';`,
];

const METHODS = new Set(['get', 'post', 'put', 'patch', 'del']);

const CONFIG = {
  expose: 'export',
  jsDoc: 'extended',
  topRef: true,
  encodeRefs: false,
  skipTypeCheck: true,
  additionalProperties: false,
  fullDescription: false,
  tsconfig: join(root, 'tsconfig.json'),
};

/** The version of the server, and its routes as they are mounted, each with its contract's exchange. */
export async function mountedRoutes() {
  const files = readdirSync(CONTRACTS).filter((name) => name.endsWith('.ts'));
  const names = files.map((name) => basename(name, '.ts'));
  const imports = names.map((name, index) => `export * as _${index} from './contract/${name}';`);
  const loaded = await loadText([...ENGINE, ...imports].join('\n'));
  const exchanges = exchangesIn(files);
  const byContract = new Map();
  for (const [index, resource] of names.entries()) {
    for (const [constant, routes] of Object.entries(loaded[`_${index}`])) {
      for (const [name, contract] of Object.entries(routes)) {
        const exchange = exchanges.get(`${resource}/${constant}/${name}`) ?? spreadInto(exchanges, resource, name);
        if (exchange) byContract.set(contract, { ...exchange, resource, name });
      }
    }
  }
  const routes = loaded.ROUTES.map((route) => {
    if (route.contract && !byContract.has(route.contract)) {
      throw new Error(`${route.method} ${route.path} has a contract that is in no constant of src/contract`);
    }
    const address = route.path.replace(/:(\w+)/g, '{$1}').replace('*', '{path}');
    return { route, address, exchange: byContract.get(route.contract) };
  });
  return { version: loaded.VERSION, accepted: acceptedBy(loaded), exchanges, routes };
}

/** By the member of a job that is sent: what its reader accepts. */
function acceptedBy({ OPTION_NAMES, optionSchema, TYPE_SCHEMA, readUuidV7, describe }) {
  const options = OPTION_NAMES.map((name) => [name, optionSchema(name)]);
  return new Map([...options, ['type', TYPE_SCHEMA], ['id', describe(readUuidV7)]]);
}

/** A route that a constant has from another one of its file. */
function spreadInto(declared, resource, name) {
  const [found] = [...declared].filter(([key]) => key.startsWith(`${resource}/`) && key.endsWith(`/${name}`));
  return found?.[1];
}

/** Routes that are mounted twice have one contract. */
export function idOf({ resource, name }, ids) {
  const base = `${resource}.${name}`;
  for (let count = 1; ; count++) {
    const id = count === 1 ? base : `${base}.${count}`;
    if (ids.has(id)) continue;
    ids.add(id);
    return id;
  }
}

/** A comment begins with a sentence that stands for the whole. */
export function textOf(text) {
  const [, summary = text, description] = /^(.*?[^.]\.)(?: (.*))?$/.exec(text) ?? [];
  return { summary: summary.replace(/\.$/, ''), ...(description && { description }) };
}

/** The parameters that a path names. */
export const namesIn = (address) => Array.from(address.matchAll(/\{(\w+)\}/g), ([, name]) => name);

/** The text of a document, as it is written. */
export const written = (document) => `${JSON.stringify(document, null, 2)}\n`;

// ---- what the contracts declare -------------------------------------------------------------------------------------------

/**
 * The exchanges of all contracts by `file/constant/route`. For each member of one an alias is added to its file, in memory, which
 * the generator of schemas then reads like every other type.
 */
function exchangesIn(files) {
  const exchanges = new Map();
  const owners = new Map();
  for (const file of files) {
    const path = join(CONTRACTS, file);
    const text = readFileSync(path, 'utf8');
    const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
    source.forEachChild((statement) => {
      if (ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement)) {
        const { text: name } = statement.name;
        if (!statement.modifiers?.length) return;
        if (owners.has(name)) throw new Error(`${file} and ${owners.get(name)} both have a type ${name}`);
        owners.set(name, file);
      }
      if (!ts.isVariableStatement(statement)) return;
      for (const { name, initializer } of statement.declarationList.declarations) {
        if (!initializer || !ts.isObjectLiteralExpression(initializer)) continue;
        for (const property of initializer.properties) {
          const exchange = exchangeOf(property, source);
          const key = `${basename(file, '.ts')}/${name.getText()}/${property.name?.getText()}`;
          if (exchange) exchanges.set(key, { ...exchange, path, alias: `Exchange${exchanges.size}` });
        }
      }
    });
  }
  return exchanges;
}

/** What travels on one route, as it is written; undefined where a member is no route. */
function exchangeOf(property, source) {
  const call = ts.isPropertyAssignment(property) ? property.initializer : undefined;
  if (!call || !ts.isCallExpression(call) || !METHODS.has(call.expression.getText())) return undefined;
  const [type] = call.typeArguments ?? [];
  const where = `${source.fileName}: ${property.name.getText()}`;
  if (!type) throw new Error(`${where} does not say what travels`);
  const literal = literalOf(type, source);
  if (!literal) throw new Error(`${where} must say what travels as one object type`);
  const text = commentOf(property);
  if (!text) throw new Error(`${where} needs a comment that says what it does`);
  const members = new Map(literal.members.map((member) => [member.name.getText(), member.type]));
  const errors = (members.get('errors')?.getText().match(/\d+/g) ?? []).sort();
  members.delete('errors');
  const types = new Map([...members].map(([key, value]) => [key, value.getText()]));
  const messages = new Map([...types].filter(([key]) => MESSAGES.has(key)));
  for (const key of messages.keys()) types.delete(key);
  return { types, messages, errors, text };
}

/** The members of an object type, or of the alias of one in the same file. */
function literalOf(type, source) {
  if (ts.isTypeLiteralNode(type)) return type;
  if (!ts.isTypeReferenceNode(type) || type.typeArguments) return undefined;
  const alias = source.statements.find(
    (one) => ts.isTypeAliasDeclaration(one) && one.name.text === type.typeName.getText(),
  );
  return alias && literalOf(alias.type, source);
}

/** The text of a comment in one line. */
export function commentOf(node) {
  const comments = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  return oneLine(ts.getTextOfJSDocComment(comments.at(-1)?.comment) ?? '');
}

export const oneLine = (text) => text.replace(/\s+/g, ' ').trim();

// ---- schemas ------------------------------------------------------------------------------------------------------------

/** What of an answer is JSON: one may have media types beside it, `Stats | Media<'text/plain'>`. */
export const jsonIn = (type) =>
  type
    .split('|')
    .filter((part) => !/^\s*Media<'[^']+'>\s*$/.test(part))
    .join('|')
    .trim();

export const aliasOf = (alias, member) => `${alias}_${member}`;

/**
 * The schemas of these members of all exchanges, each under the name of {@link aliasOf}, and of the types that they name.
 * @param kind `types` or `messages`
 * @param named types that are wanted beside them
 */
export function schemasOf(exchanges, kind, named) {
  const added = new Map();
  const wanted = [...named];
  for (const { path, alias, [kind]: members } of exchanges.values()) {
    for (const [member, declared] of members) {
      const type = jsonIn(declared);
      if (type === 'null' || type === '') continue;
      wanted.push(aliasOf(alias, member));
      added.set(path, `${added.get(path) ?? ''}\nexport type ${aliasOf(alias, member)} = ${type};`);
    }
  }
  const program = programWith(added);
  const generator = new SchemaGenerator(program, createParser(program, CONFIG), createFormatter(CONFIG), CONFIG);
  const nodes = [];
  const names = new Set();
  for (const file of program.getSourceFiles()) {
    if (!file.fileName.startsWith(CONTRACTS)) continue;
    file.forEachChild((node) => {
      const isType = ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node);
      if (isType && (ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Export) !== 0) {
        // Of two with one name the document would have one.
        if (names.has(node.name.text)) throw new Error(`${file.fileName}: there is another ${node.name.text}`);
        names.add(node.name.text);
      }
      if (wanted.includes(node.name?.text)) nodes.push(node);
    });
  }
  if (nodes.length !== wanted.length) throw new Error(`only ${nodes.length} of ${wanted.length} types were found`);
  try {
    return generator.createSchemaFromNodes(nodes).definitions;
  } catch (error) {
    // The generator's own error prints the whole program.
    throw new Error(`a type in src/contract cannot be made a schema: ${messagesOf(error)}`);
  }
}

/** What an error and its causes say, with the text of the type that each is about. */
function messagesOf({ message, cause, diagnostic }) {
  const { file, start, length } = diagnostic ?? {};
  const text = file && start !== undefined ? ` (${file.fileName}: ${file.text.slice(start, start + length)})` : '';
  return `${message}${text}${cause ? `; ${messagesOf(cause)}` : ''}`;
}

function programWith(added) {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(CONFIG.tsconfig, ts.sys.readFile).config,
    ts.sys,
    root,
  );
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, language, ...rest) => {
    if (!name.startsWith(CONTRACTS)) return getSourceFile.call(host, name, language, ...rest);
    const text = withSecondNames(readFileSync(name, 'utf8')) + (added.get(name) ?? '');
    return ts.createSourceFile(name, text, language, true);
  };
  const names = readdirSync(CONTRACTS).map((name) => join(CONTRACTS, name));
  return ts.createProgram(names, { ...options, types: [] }, host);
}

/** A contract in which `Also<'Name', Members>` is written out, since what a mapped type adds has no comments. */
function withSecondNames(text) {
  const source = ts.createSourceFile('', text, ts.ScriptTarget.Latest, true);
  const interfaces = source.statements.filter(ts.isInterfaceDeclaration);
  const mayBeAbsent = (type, member) => {
    const own = interfaces.find(({ name }) => name.text === type)?.members ?? [];
    return own.find(({ name }) => name?.getText() === member)?.questionToken !== undefined;
  };
  const edits = interfaces.flatMap(({ heritageClauses = [], members }) =>
    heritageClauses
      .flatMap(({ types }) => types)
      .filter(({ expression }) => expression.getText() === 'Also')
      .flatMap((also) => {
        const [of, type] = also.typeArguments.map((argument) => argument.getText());
        const seconds = Object.entries(SECOND_NAMES[of.slice(1, -1)]).map(([second, first]) => {
          const mark = mayBeAbsent(type, first) ? '?' : '';
          return `\n/** The same as \`${first}\`. */\n${second}${mark}: ${type}['${first}'];`;
        });
        return [
          { from: also.getStart(), to: also.end, text: type },
          { from: members.pos, to: members.pos, text: seconds.join('') },
        ];
      }),
  );
  return edits.reverse().reduce((whole, { from, to, text }) => whole.slice(0, from) + text + whole.slice(to), text);
}

/** `Page<Job>` is no name that a component may have, nor is `EventOf<"job.failed">`. */
export const componentName = (name) =>
  name
    .replace(/<"(.*)">$/, '.$1')
    .replace(/<(.*)>$/, (_, of) => `Of${of}`)
    .replace(/[^\w.-]/g, '');

/**
 * As OpenAPI has them: references lead to the components, and comments are one line. Objects are open, because an answer may have
 * more members in a later version.
 */
export function inDocument(schema) {
  if (Array.isArray(schema)) return schema.map(inDocument);
  if (typeof schema !== 'object' || schema === null) return schema;
  const shown = Object.entries(schema).filter(([name, value]) => name !== 'additionalProperties' || value !== false);
  const members = shown.map(([name, value]) => {
    if (name === '$ref') {
      return [name, `#/components/schemas/${componentName(value.replace('#/definitions/', ''))}`];
    }
    // In one order, whatever parts a type was put together from.
    if (name === 'required' && Array.isArray(value)) {
      return [name, Object.keys(schema.properties).filter((member) => value.includes(member))];
    }
    return [name, name === 'description' && typeof value === 'string' ? oneLine(value) : inDocument(value)];
  });
  return Object.fromEntries(members);
}
