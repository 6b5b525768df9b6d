/**
 * The document of the API, built from the compact text that `.ci/openapi-text.mjs` writes. As JSON it would be a
 * twentieth of the Worker.
 *
 * A schema is one of
 *
 * | text | stands for |
 * |---|---|
 * | `s` `n` `b` `z` `o` `a` | a string, number, boolean, null, object, array; several letters: any of these types |
 * | `*` | anything |
 * | `Job` | a reference to the schema of this name |
 * | `[s]`, `<s>` | an array of strings, an object whose members are strings |
 * | `{id,name?:n}` | an object with a string `id` and an optional number `name`; `+n` after it: the rest are numbers |
 * | `(s\|Job)` | either of these |
 * | `'on\|off'`, `=on` | one of these words, this word |
 * | `!…!` | JSON as it is |
 *
 * The schemas are lines of `Name:schema`. A line with a path is followed by its operations. The parts of an operation
 * are separated by spaces: method, id, scope, members of the query (`^`: it takes an idempotency key), the body, such
 * as `Job` or `;text/plain`, and the answers, such as `200=Job;text/plain`, or `409` for an error.
 */
import { own } from '../../job/own';
import { paths, rest, schemas, statuses } from './built';

export type CompactSchema = Record<string, unknown>;

const TYPES: Readonly<Record<string, string>> = {
  s: 'string',
  n: 'number',
  b: 'boolean',
  z: 'null',
  o: 'object',
  a: 'array',
};

const ERROR = { $ref: '#/components/responses/Error' };

let text: string | undefined;

/** JSON text. @param url of the server */
export function documentText(url: string): string {
  text ??= JSON.stringify({
    ...rest,
    paths: readPaths(paths),
    components: { ...rest.components, schemas: readSchemas(schemas) },
  });
  return text.replace('[{"url":"/"}]', () => JSON.stringify([{ url }]));
}

function readSchemas(lines: string): CompactSchema {
  return Object.fromEntries(
    lines.split('\n').map((line) => {
      const end = line.indexOf(':');
      return [line.slice(0, end), new Reader(line.slice(end + 1)).schema()];
    }),
  );
}

function readPaths(lines: string): CompactSchema {
  const found: CompactSchema = {};
  let item: CompactSchema = {};
  for (const line of lines.split('\n')) {
    if (line.startsWith('/')) {
      const parameters = Array.from(line.matchAll(/\{(\w+)\}/g), ([, name]) => ({
        ...{ name, in: 'path', required: true },
        schema: { type: 'string' },
      }));
      item = parameters.length > 0 ? { parameters } : {};
      found[line] = item;
    } else {
      const [method = '', ...parts] = line.split(' ');
      item[method] = readOperation(parts);
    }
  }
  return found;
}

function readOperation([operationId, scope, query, body, ...answers]: string[]): CompactSchema {
  const parameters = query ? new Reader(query).parameters() : [];
  return {
    operationId,
    security: scope ? [{ key: scope === 'key' ? [] : [scope] }] : [],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: readContent(body) } }),
    responses: Object.fromEntries([...answers.map(readAnswer), ['default', ERROR]]),
  };
}

function readAnswer(answer: string): [status: string, CompactSchema] {
  const [status = '', content] = answer.split(/=(.*)/);
  if (content === undefined) return [status, ERROR];
  const description = own(statuses, status);
  return [status, content === '' ? { description } : { description, content: readContent(content) }];
}

function readContent(content: string): CompactSchema {
  const [schema, ...others] = content.split(';');
  return { ...(schema && json(schema)), ...Object.fromEntries(others.map((type) => [type, {}])) };
}

/** A schema in the form of the compact text. */
export const schemaIn = (text: string): CompactSchema => new Reader(text).schema();

/** The names of the parameters of a query in the form of the compact text. */
export const parametersIn = (text: string): string[] =>
  new Reader(text).parameters().flatMap(({ name }) => (typeof name === 'string' ? [name] : []));

const json = (schema: string) => ({ 'application/openjobspec+json': { schema: new Reader(schema).schema() } });

const LETTERS = /[a-z]+/y;
const NAME = /\w+/y;
const WORD = /[\w.:+*-]+/y;
const MEMBER = /[\w^]+/y;

/** Reads a text from its beginning to its end. */
class Reader {
  #at = 0;

  constructor(private readonly text: string) {}

  /** Takes what comes next, if it fits. @param pattern sticky */
  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.text) ?? [];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  /** Is this the next character? Then it is taken. */
  #has(character: string): boolean {
    const isNext = this.text[this.#at] === character;
    if (isNext) this.#at++;
    return isNext;
  }

  /** All up to a character, which is taken as well. */
  #upTo(end: string): string {
    const start = this.#at;
    const found = this.text.indexOf(end, start);
    this.#at = found + 1;
    return this.text.slice(start, found);
  }

  schema(): CompactSchema {
    const types = this.#take(LETTERS);
    if (types !== undefined) {
      const all = Array.from(types, (letter) => own(TYPES, letter));
      return { type: all.length === 1 ? all[0] : all };
    }
    const name = this.#take(NAME);
    if (name !== undefined) return { $ref: `#/components/schemas/${name}` };
    switch (this.text[this.#at++]) {
      case '[':
        return { type: 'array', items: this.#inside() };
      case '<':
        return { type: 'object', additionalProperties: this.#inside() };
      case '(':
        return { anyOf: this.#either() };
      case '{':
        return this.#object();
      case "'":
        return { type: 'string', enum: this.#upTo("'").split('|') };
      case '=':
        return { type: 'string', const: this.#take(WORD) };
      case '!':
        return JSON.parse(this.#upTo('!')) as CompactSchema;
      default:
        return {};
    }
  }

  /** A schema, and the bracket that closes it. */
  #inside(): CompactSchema {
    const schema = this.schema();
    this.#at++;
    return schema;
  }

  #either(): CompactSchema[] {
    const all: CompactSchema[] = [];
    do all.push(this.schema());
    while (this.text[this.#at++] === '|');
    return all;
  }

  #object(): CompactSchema {
    const members = this.#members();
    this.#at++;
    const required = members.filter(({ isRequired }) => isRequired).map(({ name }) => name);
    const more = this.#has('+') && this.schema();
    return {
      type: 'object',
      properties: Object.fromEntries(members.map(({ name, schema }) => [name, schema])),
      ...(required.length > 0 && { required }),
      ...(more && { additionalProperties: more }),
    };
  }

  #members() {
    const members: { name: string; isRequired: boolean; schema: CompactSchema }[] = [];
    for (let name = this.#take(MEMBER); name !== undefined; name = this.#has(',') ? this.#take(MEMBER) : undefined) {
      const isRequired = !this.#has('?');
      members.push({ name, isRequired, schema: this.#has(':') ? this.schema() : { type: 'string' } });
    }
    return members;
  }

  /** The members of a query. */
  parameters(): CompactSchema[] {
    return this.#members().map(({ name, isRequired, schema }) =>
      name === '^'
        ? { $ref: '#/components/parameters/IdempotencyKey' }
        : { name, in: 'query', ...(isRequired && { required: true }), schema },
    );
  }
}
