/**
 * The document of the API as compact text for the Worker, without descriptions. src/http/openapi/document.ts reads it,
 * and documents the notation. This module runs anywhere: a test in workerd compares what was read with what was written.
 */

const MEDIA_TYPE = 'application/openjobspec+json';
const TYPES = { string: 's', number: 'n', boolean: 'b', null: 'z', object: 'o', array: 'a' };

/** Members of the document that only explain. */
const EXPLAINS = new Set(['description', 'summary', 'tags']);

/** Holds members whose names somebody chose, so that `description` may be one of them. */
const NAMED = new Set(['properties', 'schemas']);

/** The document without what only explains; the descriptions of answers are required. */
export function withoutDescriptions(value, holder = '') {
  if (Array.isArray(value)) return value.map((entry) => withoutDescriptions(entry));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(
    ([name]) => NAMED.has(holder) || (holder === 'answer' && name === 'description') || !EXPLAINS.has(name),
  );
  return Object.fromEntries(
    members.map(([name, member]) => [name, withoutDescriptions(member, holder === 'responses' ? 'answer' : name)]),
  );
}

/**
 * Writes the document.
 * @returns {{ rest: object, statuses: Record<string, string>, schemas: string, paths: string }}
 * `rest`: all but schemas and paths
 */
export function written(document) {
  const statuses = {};
  const { schemas } = document.components;
  const names = Object.entries(schemas).map(([name, schema]) => `${name}:${schemaText(schema)}`);
  const paths = Object.entries(document.paths).map(([path, item]) => {
    const { parameters, ...operations } = item;
    const lines = Object.entries(operations).map(([method, operation]) => operationText(method, operation, statuses));
    return [path, ...lines].join('\n');
  });
  const rest = { ...document, paths: {}, components: { ...document.components, schemas: {} } };
  return { rest, statuses, schemas: names.join('\n'), paths: paths.join('\n') };
}

/** JSON as it is, with nothing in it that ends or separates. */
const raw = (value) => `!${JSON.stringify(value).replaceAll('!', '\\u0021').replaceAll(' ', '\\u0020')}!`;

function schemaText(schema) {
  const { type, properties, required = [], ...others } = schema;
  const shape = Object.keys(others).join();
  if (properties && type === 'object' && (shape === '' || shape === 'additionalProperties')) {
    const more = others.additionalProperties;
    return `{${propertiesText(properties, required)}}${more === undefined ? '' : `+${schemaText(more)}`}`;
  }
  if (properties || required.length > 0) return raw(schema);
  if (type === undefined) {
    if (shape === '') return '*';
    if (shape === '$ref') return schema.$ref.replace('#/components/schemas/', '');
    if (shape === 'anyOf') return `(${schema.anyOf.map(schemaText).join('|')})`;
  }
  if (shape === '')
    return [type]
      .flat()
      .map((one) => TYPES[one])
      .join('');
  if (shape === 'items' && type === 'array') return `[${schemaText(schema.items)}]`;
  if (shape === 'additionalProperties' && type === 'object') return `<${schemaText(schema.additionalProperties)}>`;
  const isWords = (words) => type === 'string' && words.every((word) => /^[\w.:+*-]+$/.test(word));
  if (shape === 'enum' && isWords(schema.enum)) return `'${schema.enum.join('|')}'`;
  if (shape === 'const' && type === 'string' && isWords([schema.const])) return `=${schema.const}`;
  return raw(schema);
}

function propertiesText(properties, required) {
  const names = Object.keys(properties);
  const inOrder = names.filter((name) => required.includes(name));
  if (inOrder.join() !== required.join()) throw new Error(`required must be in the order of the members: ${required}`);
  return names.map((name) => memberText(name, required.includes(name), properties[name])).join();
}

function memberText(name, isRequired, schema) {
  if (!/^\w+$/.test(name)) throw new Error(`${name} is no name that can be written`);
  const text = schemaText(schema);
  return `${name}${isRequired ? '' : '?'}${text === 's' ? '' : `:${text}`}`;
}

function operationText(method, operation, statuses) {
  const { operationId, security, parameters = [], requestBody, responses } = operation;
  const scopes = security[0]?.key;
  const query = parameters.map(({ $ref, name, required, schema }) => ($ref ? '^' : memberText(name, required, schema)));
  const answers = Object.entries(responses).map(([status, answer]) => {
    if (answer.$ref) return status === 'default' ? '' : status;
    statuses[status] = answer.description;
    return `${status}=${contentText(answer.content)}`;
  });
  return [
    ...[method, operationId, scopes ? (scopes[0] ?? 'key') : '', query.join()],
    ...[contentText(requestBody?.content), ...answers.filter(Boolean)],
  ].join(' ');
}

function contentText({ [MEDIA_TYPE]: json, ...others } = {}) {
  return [json ? schemaText(json.schema) : '', ...Object.keys(others)].join(';');
}
